//! `overdue config`: writes, checks or shows the settings. Needs no Redis.

use serde::Serialize;

use crate::args::check::Config;
use crate::exit::Failure;
use crate::output::Output;
use crate::settings::layers::Layers;
use crate::settings::{Settings, sample, show};

#[derive(Serialize)]
struct Checked {
    ok: bool,
    /// The file that was read, if any.
    file: Option<String>,
}

/// Runs the command on what was given, which may be wrong.
pub(crate) fn run(config: &Config, layers: Layers, output: &mut Output) -> Result<(), Failure> {
    match config {
        Config::Sample => output.raw(&sample::sample()),
        Config::Check => {
            let file = layers.file().map(|path| path.display().to_string());
            Settings::resolve(layers).map_err(Failure::settings)?;
            output.say("ok")?;
            output.object(&Checked { ok: true, file })
        }
        Config::Show => {
            let effective = show::effective(&layers);
            Settings::resolve(layers).map_err(Failure::settings)?;
            output.table().page(&effective)
        }
    }
}
