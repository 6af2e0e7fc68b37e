//! `overdue config`: writes, checks or shows the settings. Needs no Redis.

use serde::Serialize;

use crate::args::check::Config;
use crate::exit::Failure;
use crate::output::Output;
use crate::settings::layers::Layers;
use crate::settings::{Settings, sample, show, watch};

#[derive(Serialize)]
struct Checked {
    ok: bool,
    /// The file that was read, if any.
    file: Option<String>,
    /// What is allowed, but costs more than one may think.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Runs the command on what was given, which may be wrong.
pub(crate) fn run(config: &Config, layers: Layers, output: &mut Output) -> Result<(), Failure> {
    match config {
        Config::Sample => output.raw(&sample::sample()),
        Config::Check => {
            let file = layers.file().map(|path| path.display().to_string());
            let settings = Settings::resolve(layers).map_err(Failure::settings)?;
            let warnings = watch::warnings(&settings.relay.watch);
            warnings.iter().try_for_each(|warning| output.say(format_args!("warning: {warning}")))?;
            output.say("ok")?;
            output.object(&Checked { ok: true, file, warnings })
        }
        Config::Show => {
            let settings = Settings::resolve(layers.clone()).map_err(Failure::settings)?;
            output.table().page(&show::effective(&layers, &settings.relay.watch))
        }
    }
}
