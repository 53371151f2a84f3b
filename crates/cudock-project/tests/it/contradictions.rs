//! What cannot all be so, and where that is said.

use crate::read;

/// Texts, and the errors they give.
const CONTRADICTIONS: &[(&str, &str)] = &[
    (
        "[workload]\nduration = \"2h\"\nrate = 5\n",
        "3:1: `duration` is for a job and `rate` for a service: keep one",
    ),
    ("[workload]\ntrials = 27\nitems = 5\n", "3:1: `items` is for a job and `trials` for a sweep: keep one"),
    (
        "[workload]\nitems = 5\nduration = \"2h\"\n",
        "3:1: `duration` and `items`: one run has no items: keep one of the two",
    ),
    (
        "[workload]\nkind = \"serve\"\nduration = \"2h\"\n",
        "3:1: `duration` is for a job, and `kind` is another",
    ),
    (
        "[workload]\nrate = 1\nreplica_rate = 5\nbench = \"b.json\"\n",
        "4:1: `replica_rate` and `bench`: both say what one instance answers: keep one",
    ),
    ("[workload]\nduration = \"-1s\"\n", "2:12: `-1s` is negative, and negative times make no sense"),
    ("[workload]\nduration = \"0s\"\n", "2:12: `duration` is no time at all"),
    ("[workload]\ntrials = 3\ntrial_time = \"0m\"\n", "3:14: `trial_time` is no time at all"),
    ("[needs]\ngpus = 0\n", "2:8: `gpus` is at least 1; leave it out if it does not matter"),
    ("[workload]\nitems = 0\n", "2:9: `items` is at least 1; leave it out if it does not matter"),
    ("[needs]\ngpu_memory = \"0GB\"\n", "2:14: `gpu_memory` is nothing; leave it out if it does not matter"),
    (
        "[needs]\ncapability = { least = \"9.0\", greatest = \"8.0\" }\n",
        "2:14: no GPU has a compute capability of at least 9.0 and at most 8.0",
    ),
    ("[needs]\nprecision = \"bf17\"\n", "2:13: no number format is called `bf17`; did you mean `bf16`?"),
    (
        "[needs]\ngpus = 1\nnvlink = true\n",
        "3:1: NVLink joins the GPUs of an instance, and `gpus = 1` leaves nothing to join",
    ),
    ("[needs]\narchitecture = \"x86_46\"\n", "2:16: unknown variant `x86_46`; did you mean `x86_64`?"),
    (
        "[deploy]\nspot = { allow = false, checkpoint_every = \"5m\" }\n",
        "2:25: `checkpoint_every` is for Spot machines, and `allow = false` rules them out",
    ),
    (
        "[deploy.spot]\nallow = false\nevictions = 0.1\n",
        "3:1: `evictions` is for Spot machines, and `allow = false` rules them out",
    ),
    ("[deploy.spot]\nevictions = -1\n", "2:13: `-1` is no rate; write evictions an hour, as 0.05"),
    ("[deploy.spot]\nevictions = nan\n", "2:13: `NaN` is no rate; write evictions an hour, as 0.05"),
    ("[deploy.spot]\ncheckpoint_takes = \"1m\"\n", "2:1: `checkpoint_takes` needs `checkpoint_every`"),
    ("[deploy]\nbudget = nan\n", "2:10: `NaN` is no budget; write US dollars, as 100 or 12.5"),
    ("[deploy]\nbudget = inf\n", "2:10: `inf` is no budget; write US dollars, as 100 or 12.5"),
    ("[deploy]\nbudget = -3\n", "2:10: `-3` is no budget; write US dollars, as 100 or 12.5"),
    ("[workload]\nfill = 101\n", "2:8: `fill` is from 1 to 100 percent"),
    ("[workload]\nreplica_rate = 0\n", "2:16: an instance that answers nothing is of no use"),
    (
        "[workload]\nmeasured_on = \"T4\"\nspeeds = { H100 = -2 }\n",
        "3:19: `-2` is no speed; write how many times as fast it is, as 0.5 or 2",
    ),
    (
        "[workload]\nspeeds = { H100 = 2 }\n",
        "2:1: `speeds` are relative to a GPU: name it with `measured_on`",
    ),
    (
        "[workload]\nrate = 5\ndeadline = \"2h\"\n",
        "3:1: a service has no end: `deadline` and `rate` contradict each other",
    ),
    (
        "[start]\nimage_size = \"8GB\"\nimage_unpacked = \"7GB\"\n",
        "3:18: an image takes more space unpacked than `image_size`, not less",
    ),
    ("[workload]\nbegins = \"2026-02-30\"\n", "2:10: "),
    ("[deploy]\nregion = \"westeurope\"\n", "2:1: unknown field `region`; did you mean `regions`?"),
];

#[test]
fn each_contradiction_names_its_place() {
    for (text, expected) in CONTRADICTIONS {
        let error = read(text).expect_err(text);
        assert!(error.starts_with(&format!("cudock.toml:{expected}")), "{text}{error}\nexpected: {expected}");
    }
}

#[test]
fn a_deadline_shorter_than_a_trial_is_one_unless_another_gpu_may_be_faster() {
    let text = "[workload]\ntrials = 27\ntrial_time = \"3h\"\ndeadline = \"2h\"\n";
    let error = read(text).unwrap_err();
    assert!(
        error.starts_with("cudock.toml:4:12: the deadline is shorter than a trial, which takes 10800s"),
        "{error}"
    );
    assert!(read(&format!("{text}measured_on = \"T4\"\n")).is_ok());
}

#[test]
fn what_is_merely_missing_is_no_contradiction() {
    for text in ["[workload]\nitems = 5\n", "[workload]\nrate = 5\n", "[data]\nstorage = \"blob-hot\"\n"] {
        assert!(read(text).is_ok(), "{text}");
    }
}
