//! `--idle`: ends a workload from the inside when its GPUs have nothing to do.
//!
//! A virtual machine makes the reaper delete everything. If a service bills for work and not for
//! machines, it is enough to end the program, which needs no rights: a shell starts it and watches
//! the GPUs next to it.

use std::borrow::Cow;
use std::time::Duration;

use crate::services::backend::IdleEnd;
use crate::services::error::TranslationError;
use crate::spec::{DeploymentSpec, WorkKind};

/// Time after the start in which nothing counts as idle: programs load data and models first.
const WARM_UP: Duration = Duration::from_secs(600);
const INTERVAL: u64 = 10;
/// A GPU below this utilization in percent is idle.
const THRESHOLD: u32 = 5;

/// The workload with what watches it, or an error where nothing can.
pub(super) fn watched<'s>(
    spec: &'s DeploymentSpec,
    end: Result<IdleEnd, &'static str>,
) -> Result<Cow<'s, DeploymentSpec>, TranslationError> {
    let Some(idle) = spec.idle else { return Ok(Cow::Borrowed(spec)) };
    let reason = match end {
        Ok(IdleEnd::Service) => return Ok(Cow::Borrowed(spec)),
        Err(reason) => reason,
        Ok(_) if matches!(spec.work, WorkKind::MultiNode { .. }) => {
            "nodes that work together are not watched"
        }
        Ok(_) if spec.gpus == 0 => "the workload uses no GPU",
        Ok(IdleEnd::Reaper) if spec.existing.reaper_identity.is_some() => {
            "the machine needs a role to run the reaper, and with --reaper-identity none is assigned"
        }
        Ok(IdleEnd::Reaper) => return Ok(Cow::Borrowed(spec)),
        Ok(IdleEnd::Program) if spec.command.is_empty() => {
            return Err(TranslationError::new("--idle needs to know the program that it ends")
                .hint("name the program and its arguments after `--`"));
        }
        Ok(IdleEnd::Program) => {
            let shell = ["/bin/sh".to_owned(), "-c".to_owned(), wrapper(idle), "cudock".to_owned()];
            let command = shell.into_iter().chain(spec.command.iter().cloned()).collect();
            return Ok(Cow::Owned(DeploymentSpec { command, ..spec.clone() }));
        }
    };
    Err(TranslationError::new(format!("--idle cannot be kept here: {reason}"))
        .hint("choose an earlier deadline with --ttl"))
}

/// Shell commands that take until the GPUs were idle for a time. A GPU that cannot be read counts as busy.
pub(super) fn wait_until_idle(idle: Duration) -> String {
    format!(
        "idle=-{warm_up}; while [ $idle -lt {limit} ]; do sleep {INTERVAL}; \
         busy=$(nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader,nounits 2> /dev/null | sort -n | tail -n 1); \
         if [ \"${{busy:-100}}\" -lt {THRESHOLD} ] 2> /dev/null; then idle=$((idle + {INTERVAL})); \
         elif [ $idle -gt 0 ]; then idle=0; fi; done",
        warm_up = WARM_UP.as_secs(),
        limit = idle.as_secs(),
    )
}

/// Runs its arguments, passes signals on, and ends the program when the GPUs were idle. One line: not every service keeps
/// line breaks in commands. The watch is killed, because a shell that has just been forked may still have the trap of its
/// parent and survive anything else.
fn wrapper(idle: Duration) -> String {
    format!(
        "\"$@\" & work=$!; trap 'kill -TERM $work' TERM INT; \
         ( {wait}; echo \"cudock: ends because the GPUs were idle for {limit} s\" >&2; kill -TERM $work; sleep 30; kill -KILL $work ) & watch=$!; \
         wait $work; code=$?; while kill -0 $work 2> /dev/null; do wait $work; code=$?; done; \
         kill -KILL $watch 2> /dev/null; exit $code",
        wait = wait_until_idle(idle),
        limit = idle.as_secs(),
    )
}
