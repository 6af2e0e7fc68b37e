//! `overdue top`: queues, groups and processes at work. Reads, and changes nothing.

mod cells;
mod frame;
mod reading;
mod screen;
mod view;

use std::time::{Duration, Instant};

use overdue_store::Store;

use self::frame::Frame;
use self::reading::Reading;
use self::screen::{Key, Screen};
use self::view::View;
use super::place;
use crate::args::check::Top;
use crate::exit::Failure;
use crate::output::Output;
use crate::settings::Settings;

/// From one reading to the next.
const EVERY: Duration = Duration::from_secs(1);

/// Runs the command: until a key ends it, or for one frame.
pub(crate) async fn run(args: &Top, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let store = place::connect(settings).await?;
    let place = format!("{}, namespace {}", settings.redis.describe(), store.keyspace().namespace());
    if args.once || output.is_json() || !Screen::is_there() {
        return once(&store, &place, output).await;
    }
    let mut screen = Screen::open()?;
    let mut frame = Frame::new(place, output.has_colours());
    let mut before: Option<Reading> = None;
    loop {
        let started = Instant::now();
        let reading = tokio::select! {
            reading = Reading::take(&store) => reading,
            Key::End = screen.key() => return Ok(()),
        };
        match reading {
            Ok(mut reading) => {
                if let Some(before) = &before {
                    reading.keep_lateness(before);
                }
                frame.show(View::of(&reading, before.as_ref()));
                before = Some(reading);
            }
            // What was read last stays, and says so.
            Err(error) => frame.fail(error.to_string()),
        }
        // At most half of the time is spent reading.
        let next = started + EVERY.max(started.elapsed() * 2);
        loop {
            screen.draw(&frame)?;
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => break,
                key = screen.key() => match key {
                    Key::End => return Ok(()),
                    Key::Resized => {}
                },
            }
        }
    }
}

async fn once(store: &Store, place: &str, output: &mut Output) -> Result<(), Failure> {
    let first = Reading::take(store).await?;
    tokio::time::sleep_until((first.at + EVERY).into()).await;
    let mut reading = Reading::take(store).await?;
    reading.keep_lateness(&first);
    let view = View::of(&reading, Some(&first));
    output.object(&view)?;
    let mut frame = Frame::new(place.to_owned(), false);
    frame.show(view);
    frame.lines().iter().try_for_each(|line| output.say(line))
}
