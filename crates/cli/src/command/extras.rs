//! `overdue extras`: completions and man pages, for `scripts/dist` and packagers.

use std::fs;
use std::io;
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::args::probe::Extras;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// The shells that get completions.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Runs the command. What was there by the same names is written over.
pub(crate) fn run(args: &Extras, output: &mut Output) -> Result<(), Failure> {
    write(&args.folder).map_err(|error| {
        let what =
            format!("cannot write into {}: {error}: give a folder that is ours", args.folder.display());
        Failure::new(Exit::Usage, what)
    })?;
    output.say(format_args!("completions and man pages are in {}", args.folder.display()))
}

fn write(folder: &Path) -> io::Result<()> {
    let (completions, man) = (folder.join("completions"), folder.join("man"));
    fs::create_dir_all(&completions)?;
    fs::create_dir_all(&man)?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut Cli::command(), "overdue", &completions)?;
    }
    clap_mangen::generate_to(Cli::command(), &man)
}
