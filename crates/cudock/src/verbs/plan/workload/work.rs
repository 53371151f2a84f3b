//! What is to be done: a job, items, a sweep; a service is in a file of its own.

use std::time::Duration;

use cudock_plan::Work;
use cudock_project::{Span, WorkloadKind};

use super::asking::{Asking, Given, either};
use crate::failure::Failure;

/// A job of which nothing else is known.
const DURATION: Duration = Duration::from_secs(3600);

impl Asking<'_> {
    pub(super) fn work(&mut self) -> Result<Work, Failure> {
        let by_flags = self.kind_by_flags()?;
        let by_file = self.kind_by_file();
        // Flags of another kind of work leave nothing of what the file says of it.
        let of_file = by_flags.is_none() || by_flags == by_file;
        let work = match by_flags.or(by_file) {
            Some(WorkloadKind::Job) => self.job(of_file)?,
            Some(WorkloadKind::Sweep) => self.sweep(of_file)?,
            Some(WorkloadKind::Serve) => self.serve(of_file)?,
            None => return Err(nothing_said()),
        };
        self.deadline_holds(&work)?;
        Ok(work)
    }

    fn kind_by_flags(&self) -> Result<Option<WorkloadKind>, Failure> {
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
        let first =
            |flags: &[(&'static str, bool)]| flags.iter().find(|(_, given)| *given).map(|(flag, _)| *flag);
        let used: Vec<_> = [
            (WorkloadKind::Job, "a job", first(&job)),
            (WorkloadKind::Sweep, "a sweep", first(&sweep)),
            (WorkloadKind::Serve, "a service", first(&serve)),
        ]
        .into_iter()
        .filter_map(|(kind, what, flag)| Some((kind, what, flag?)))
        .collect();
        if let [(_, what, flag), (_, other_what, other), ..] = used.as_slice() {
            let problem = format!("{flag} is for {what} and {other} for {other_what}");
            return Err(Failure::input(problem).hint("keep those of one kind of work"));
        }
        if flags.duration.is_some() && (flags.items.is_some() || flags.item_time.is_some()) {
            let problem = "--duration is for one run and --items for many items";
            return Err(Failure::input(problem).hint("keep one of the two"));
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
        let said = serves || self.project.places.has("workload.kind") || work.model.is_some();
        said.then_some(work.kind)
    }

    /// A time that is more than nothing.
    fn time(&self, value: Option<(Span, Given)>) -> Result<Option<Duration>, Failure> {
        match value {
            Some((Span(time), given)) if time.is_zero() => {
                Err(self.wrong(given, "that is no time at all", None))
            }
            other => Ok(other.map(|(Span(time), _)| time)),
        }
    }

    fn job(&mut self, of_file: bool) -> Result<Work, Failure> {
        let (flags, file) = (self.flags, &self.file().workload);
        let items_by_flag = flags.items.is_some() || flags.item_time.is_some();
        let duration_of_file = file.duration.filter(|_| of_file && !items_by_flag);
        let duration = either(flags.duration, "--duration", duration_of_file, "workload.duration");
        if let Some(duration) = self.time(duration)? {
            return Ok(Work::Job { duration });
        }
        let items = either(flags.items, "--items", file.items.filter(|_| of_file), "workload.items");
        let each_given =
            either(flags.item_time, "--item-time", file.item_time.filter(|_| of_file), "workload.item_time");
        let each = self.time(each_given)?;
        match (items, each, each_given) {
            (Some((0, given)), ..) => Err(self.wrong(given, "there is nothing to do", None)),
            (Some((items, _)), Some(each), _) => Ok(Work::Items { items, each, at_once: self.at_once()? }),
            (Some((_, given)), None, _) => {
                Err(self.lacks(given, "items need a time each: `item_time`, --item-time"))
            }
            (None, _, Some((_, given))) => {
                Err(self.lacks(given, "the time of an item needs their number: `items`, --items"))
            }
            (None, ..) => {
                self.assume("workload.duration", "1 h", "assumed; give it with `duration` or --duration");
                Ok(Work::Job { duration: DURATION })
            }
        }
    }

    fn at_once(&self) -> Result<Option<u32>, Failure> {
        let given = either(self.flags.at_once, "--at-once", self.file().workload.at_once, "workload.at_once");
        match given {
            Some((0, given)) => Err(self.wrong(given, "it is at least 1", None)),
            other => Ok(other.map(|(count, _)| count)),
        }
    }

    fn sweep(&mut self, of_file: bool) -> Result<Work, Failure> {
        let (flags, file) = (self.flags, &self.file().workload);
        let trials = either(flags.trials, "--trials", file.trials.filter(|_| of_file), "workload.trials");
        let each_given = either(
            flags.trial_time,
            "--trial-time",
            file.trial_time.filter(|_| of_file),
            "workload.trial_time",
        );
        let each = self.time(each_given)?;
        let (trials, each) = match (trials, each, each_given) {
            (Some((0, given)), ..) => return Err(self.wrong(given, "there is nothing to try", None)),
            (Some((trials, _)), Some(each), _) => (trials, each),
            (Some((_, given)), None, _) => {
                return Err(self.lacks(given, "trials need a time each: `trial_time`, --trial-time"));
            }
            (None, _, Some((_, given))) => {
                return Err(self.lacks(given, "the time of a trial needs their number: `trials`, --trials"));
            }
            (None, ..) => {
                let problem = "a sweep needs `trials` and `trial_time` (--trials, --trial-time)";
                return Err(self.lacks(Given::Key("workload.kind"), problem));
            }
        };
        if let Some(at_once) = self.at_once()? {
            return Ok(Work::Sweep { trials, at_once, each });
        }
        let at_once = fewest_at_once(trials, each, self.deadline().map(|(deadline, _)| deadline));
        let why =
            if at_once > 1 { "assumed: as few as meet the deadline" } else { "assumed: one after the other" };
        self.assume("workload.at_once", at_once.to_string(), why);
        Ok(Work::Sweep { trials, at_once, each })
    }

    pub(super) fn deadline(&self) -> Option<(Duration, Given)> {
        either(self.flags.deadline, "--deadline", self.file().workload.deadline, "workload.deadline")
            .map(|(Span(deadline), given)| (deadline, given))
    }

    /// What takes longer than the deadline cannot be done, unless another GPU may be faster.
    fn deadline_holds(&self, work: &Work) -> Result<(), Failure> {
        let Some((deadline, given)) = self.deadline() else { return Ok(()) };
        if deadline.is_zero() {
            return Err(self.wrong(given, "that is no time at all", None));
        }
        let (what, time) = match work {
            Work::Job { duration } => ("the job", *duration),
            Work::Items { each, .. } => ("an item", *each),
            Work::Sweep { each, .. } => ("a trial", *each),
            // A file that is planned for as a service may keep the deadline of its job; flags may not.
            Work::Serve { .. } => match given {
                Given::Flag(_) => return Err(self.wrong(given, "a service has no end", None)),
                Given::Key(_) => return Ok(()),
            },
        };
        let measured = self.flags.measured_on.is_some() || self.file().workload.measured_on.is_some();
        if time > deadline && !measured {
            let problem = format!("the deadline is shorter than {what}, which takes {time:?}");
            return Err(self
                .wrong(given, problem, None)
                .hint("name the GPU that was measured (--measured-on) if a faster one may do it"));
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

fn nothing_said() -> Failure {
    Failure::input("nothing says what is to be done").hint(
        "say how long it computes (--duration 3h), what it works through (--items 10000 --item-time 5s; --trials 27 \
         --trial-time 20m), or what it answers (--rate 5 --replica-rate 20); or write it into cudock.toml",
    )
}
