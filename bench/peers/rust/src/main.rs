//! bullmq-official and apalis-redis. `../run` starts it:
//!   peers PEER worker   --redis URL --concurrency N
//!   peers PEER burst    --redis URL --count N --due MS
//!   peers PEER steady   --redis URL --rate N --seconds S
//!   peers PEER far      --redis URL --count N
//!   peers PEER schedule --redis URL --many N --single N --callers N
//! Every mode ends with one line of JSON on stdout; the worker, on SIGTERM.

mod apalis;
mod args;
mod bullmq;
mod clock;
mod jobs;
mod lateness;

use args::Args;
use jobs::Adds;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::read()?;
    match (args.peer.as_str(), args.mode.as_str()) {
        ("bullmq", "worker") => bullmq::work(&args).await,
        ("apalis", "worker") => apalis::work(&args).await,
        ("bullmq", _) => add(bullmq::Producer::connect(&args).await?, &args).await,
        ("apalis", _) => add(apalis::Producer::connect(&args).await?, &args).await,
        (peer, _) => Err(format!("no such peer: {peer}").into()),
    }
}

async fn add<A: Adds>(to: A, args: &Args) -> Result<()> {
    let said = match args.mode.as_str() {
        "burst" => jobs::burst(&to, args).await?,
        "steady" => jobs::steady(&to, args).await?,
        "far" => jobs::far(&to, args).await?,
        "schedule" => jobs::schedule(to, args).await?,
        mode => return Err(format!("no such mode: {mode}").into()),
    };
    println!("{said}");
    Ok(())
}
