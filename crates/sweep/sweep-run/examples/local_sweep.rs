//! A sweep in a process of its own, which tests can kill: `run DIR [FLAGS]`, and the worker that it starts.

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use cudock_base::Timestamp;
use cudock_project::SweepFlags;
use cudock_sweep::{Sweep, TrialId};
use cudock_sweep_run::{ProjectSweep, SweepObserver, run_worker, watch_interrupts};

#[derive(Parser)]
enum Command {
    Run {
        directory: PathBuf,
        #[command(flatten)]
        flags: Box<SweepFlags>,
    },
    SweepWorker {
        lock: PathBuf,
    },
}

struct Printer;

impl SweepObserver for Printer {
    fn recorded(&self, sweep: &Sweep, ended: &[TrialId], _: Timestamp) {
        for trial in ended {
            let ending = sweep.trial(*trial).and_then(|trial| trial.ending(&sweep.plan().objectives));
            eprintln!("{}", ending.unwrap_or_else(|| format!("trial {trial} is started again")));
        }
    }

    fn tick(&self, _: &Sweep, _: Timestamp) {}

    fn warning(&self, text: &str) {
        eprintln!("warning: {text}");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    match Command::parse() {
        Command::Run { directory, flags } => {
            let sweep = ProjectSweep::open(&directory, Some("test"))?;
            let interrupted = watch_interrupts()?;
            let end = sweep.run(&flags, std::env::current_exe()?, &Printer, &interrupted)?;
            println!("{end:?}");
        }
        Command::SweepWorker { lock } => run_worker(&lock)?,
    }
    Ok(())
}
