//! The work: a job, items or a sweep. Services are in [`crate::serve`].

use std::time::Duration;

use cudock_base::UsageError;
use cudock_plan::Work;
use cudock_project::{TimeSpan, WorkloadKind};

use crate::assumptions::assumptions;
use crate::builder::{WorkloadBuilder, first_given, flag_or_key};
use crate::origin::Origin;

impl WorkloadBuilder<'_> {
    pub(crate) fn work(&mut self) -> Result<Work, UsageError> {
        let by_flags = self.kind_by_flags()?;
        let by_file = self.kind_by_file();
        // Flags of another kind of work override everything in the file about the work.
        let of_file = by_flags.is_none() || by_flags == by_file;
        let work = match by_flags.or(by_file) {
            Some(WorkloadKind::Job) => self.job(of_file)?,
            Some(WorkloadKind::Sweep) => self.sweep(of_file)?,
            Some(WorkloadKind::Serve) => self.serve(of_file)?,
            None => return Err(unspecified()),
        };
        self.deadline_holds(&work)?;
        Ok(work)
    }

    fn kind_by_flags(&self) -> Result<Option<WorkloadKind>, UsageError> {
        let flags = self.flags;
        let job = [
            ("--duration", flags.duration.is_some()),
            ("--items", flags.items.is_some()),
            ("--item-time", flags.item_time.is_some()),
        ];
        let sweep = [("--trials", flags.trials.is_some()), ("--trial-time", flags.trial_time.is_some())];
        let serve = [
            ("--rate", flags.rate.is_some()),
            ("--rate-night", flags.rate_night.is_some()),
            ("--replica-rate", flags.replica_rate.is_some()),
            ("--bench", flags.bench.is_some()),
        ];
        let used: Vec<_> = [
            (WorkloadKind::Job, "a job", first_given(&job)),
            (WorkloadKind::Sweep, "a sweep", first_given(&sweep)),
            (WorkloadKind::Serve, "a service", first_given(&serve)),
        ]
        .into_iter()
        .filter_map(|(kind, what, flag)| Some((kind, what, flag?)))
        .collect();
        if let [(_, what, flag), (_, other_what, other), ..] = used.as_slice() {
            let problem = format!("{flag} is for {what}, and {other} is for {other_what}");
            return Err(UsageError::new(problem).hint("use the flags of one kind of work"));
        }
        if flags.duration.is_some() && (flags.items.is_some() || flags.item_time.is_some()) {
            let problem = "--duration is for one job, and --items is for many items";
            return Err(UsageError::new(problem).hint("use one of the two"));
        }
        Ok(used.first().map(|(kind, ..)| *kind))
    }

    fn kind_by_file(&self) -> Option<WorkloadKind> {
        let work = &self.file().workload;
        if work.duration.is_some() || work.items.is_some() || work.item_time.is_some() {
            return Some(WorkloadKind::Job);
        }
        if work.trials.is_some() || work.trial_time.is_some() {
            return Some(WorkloadKind::Sweep);
        }
        let serves = work.rate.is_some() || work.replica_rate.is_some() || work.bench.is_some();
        let specified = serves || self.project.text.has("workload.kind") || work.model.is_some();
        specified.then_some(work.kind)
    }

    fn time(&self, value: Option<(TimeSpan, Origin)>) -> Result<Option<Duration>, UsageError> {
        let value = value.map(|(TimeSpan(time), given)| (time, given));
        self.above_zero(value, "must be longer than zero")
    }

    fn job(&mut self, of_file: bool) -> Result<Work, UsageError> {
        let (flags, file) = (self.flags, &self.file().workload);
        let items_by_flag = flags.items.is_some() || flags.item_time.is_some();
        let duration_of_file = file.duration.filter(|_| of_file && !items_by_flag);
        let duration = flag_or_key(flags.duration, "--duration", duration_of_file, "workload.duration");
        if let Some(duration) = self.time(duration)? {
            return Ok(Work::Job { duration });
        }
        let items = flag_or_key(flags.items, "--items", file.items.filter(|_| of_file), "workload.items");
        let each_of_file = file.item_time.filter(|_| of_file);
        let each = flag_or_key(flags.item_time, "--item-time", each_of_file, "workload.item_time");
        if let Some((items, each)) = self.pieces("item", items, each)? {
            return Ok(Work::Items { items, each, at_once: self.at_once()? });
        }
        let TimeSpan(duration) = self.default(&assumptions().duration);
        Ok(Work::Job { duration })
    }

    /// The number of items or trials and the time of each, which have to be given together.
    fn pieces(
        &self,
        noun: &str,
        count: Option<(u64, Origin)>,
        each: Option<(TimeSpan, Origin)>,
    ) -> Result<Option<(u64, Duration)>, UsageError> {
        match (count, self.time(each)?, each) {
            (Some((0, given)), ..) => Err(self.invalid(given, "must be at least 1", None)),
            (Some((count, _)), Some(each), _) => Ok(Some((count, each))),
            (Some((_, given)), None, _) => {
                Err(self.incomplete(given, format!("{noun}s also need `{noun}_time` or --{noun}-time")))
            }
            (None, _, Some((_, given))) => {
                Err(self.incomplete(given, format!("`{noun}_time` also needs `{noun}s` or --{noun}s")))
            }
            (None, ..) => Ok(None),
        }
    }

    fn at_once(&self) -> Result<Option<u32>, UsageError> {
        let file = self.file().workload.at_once;
        self.count(flag_or_key(self.flags.at_once, "--at-once", file, "workload.at_once"))
    }

    fn sweep(&mut self, of_file: bool) -> Result<Work, UsageError> {
        let (flags, file) = (self.flags, &self.file().workload);
        let trials =
            flag_or_key(flags.trials, "--trials", file.trials.filter(|_| of_file), "workload.trials");
        let each_of_file = file.trial_time.filter(|_| of_file);
        let each = flag_or_key(flags.trial_time, "--trial-time", each_of_file, "workload.trial_time");
        let trials = trials.map(|(count, given)| (u64::from(count), given));
        let Some((trials, each)) = self.pieces("trial", trials, each)? else {
            let problem = "a sweep needs `trials` and `trial_time` (--trials, --trial-time)";
            return Err(self.incomplete(Origin::Key("workload.kind"), problem));
        };
        let trials = u32::try_from(trials).unwrap_or(u32::MAX);
        if let Some(at_once) = self.at_once()? {
            return Ok(Work::Sweep { trials, at_once, each });
        }
        let at_once = fewest_at_once(trials, each, self.deadline().map(|(deadline, _)| deadline));
        let source = if at_once > 1 {
            "assumed: the fewest that meet the deadline"
        } else {
            "assumed: one after the other"
        };
        self.assume("workload.at_once", at_once.to_string(), source);
        Ok(Work::Sweep { trials, at_once, each })
    }

    pub(crate) fn deadline(&self) -> Option<(Duration, Origin)> {
        flag_or_key(self.flags.deadline, "--deadline", self.file().workload.deadline, "workload.deadline")
            .map(|(TimeSpan(deadline), given)| (deadline, given))
    }

    /// Rejects a deadline that is shorter than the work, unless another GPU may be faster.
    fn deadline_holds(&self, work: &Work) -> Result<(), UsageError> {
        let Some((deadline, given)) = self.deadline() else { return Ok(()) };
        if deadline.is_zero() {
            return Err(self.invalid(given, "must be longer than zero", None));
        }
        let (what, time) = match work {
            Work::Job { duration } => ("the job", *duration),
            Work::Items { each, .. } => ("an item", *each),
            Work::Sweep { each, .. } => ("a trial", *each),
            // A file may have a deadline for its job and be planned as a service by flags; a flag for both is an error.
            Work::Serve { .. } => match given {
                Origin::Flag(_) => return Err(self.invalid(given, "a service does not end", None)),
                Origin::Key(_) => return Ok(()),
            },
        };
        let measured = self.flags.measured_on.is_some() || self.file().workload.measured_on.is_some();
        if time > deadline && !measured {
            let problem = format!("the deadline is shorter than {what}, which takes {time:?}");
            return Err(self
                .invalid(given, problem, None)
                .hint("name the GPU that was measured with --measured-on if a faster one may meet it"));
        }
        Ok(())
    }
}

/// The fewest trials at a time that are done by the deadline, starts not counted.
fn fewest_at_once(trials: u32, each: Duration, deadline: Option<Duration>) -> u32 {
    let Some(deadline) = deadline else { return 1 };
    let waves = deadline.as_millis() / each.as_millis().max(1);
    u32::try_from(u128::from(trials).div_ceil(waves.max(1))).unwrap_or(trials).max(1)
}

fn unspecified() -> UsageError {
    UsageError::new("no work is specified").hint(
        "give a duration (--duration 3h), items or trials (--items 10000 --item-time 5s; --trials 27 --trial-time 20m), or \
         a request rate (--rate 5 --replica-rate 20), or write them into cudock.toml",
    )
}
