//! Contradictions, and the location that is reported.

use crate::read;

/// Texts and their errors.
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
        "4:1: `replica_rate` and `bench`: both set the rate of one instance: keep one",
    ),
    ("[workload]\nduration = \"-1s\"\n", "2:12: `-1s` is negative; times must not be"),
    ("[workload]\nduration = \"0s\"\n", "2:12: `duration` must be longer than zero"),
    ("[workload]\ntrials = 3\ntrial_time = \"0m\"\n", "3:14: `trial_time` must be longer than zero"),
    ("[needs]\ngpus = 0\n", "2:8: `gpus` must be at least 1; omit it if it does not matter"),
    ("[workload]\nitems = 0\n", "2:9: `items` must be at least 1; omit it if it does not matter"),
    (
        "[needs]\ngpu_memory = \"0GB\"\n",
        "2:14: `gpu_memory` must be larger than zero; omit it if it does not matter",
    ),
    (
        "[needs]\ncapability = { least = \"9.0\", greatest = \"8.0\" }\n",
        "2:14: no GPU has a compute capability of at least 9.0 and at most 8.0",
    ),
    ("[needs]\nprecision = \"bf17\"\n", "2:13: unknown variant `bf17`; did you mean `bf16`?"),
    (
        "[needs]\ngpus = 1\nnvlink = true\n",
        "3:1: NVLink connects the GPUs of an instance, and `gpus = 1` leaves nothing to connect",
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
    ("[deploy.spot]\nevictions = -1\n", "2:13: invalid rate `-1`: expected evictions per hour such as 0.05"),
    (
        "[deploy.spot]\nevictions = nan\n",
        "2:13: invalid rate `NaN`: expected evictions per hour such as 0.05",
    ),
    ("[deploy.spot]\ncheckpoint_takes = \"1m\"\n", "2:1: `checkpoint_takes` needs `checkpoint_every`"),
    ("[deploy]\nbudget = nan\n", "2:10: invalid budget `NaN`: expected US dollars such as 100 or 12.5"),
    ("[deploy]\nbudget = inf\n", "2:10: invalid budget `inf`: expected US dollars such as 100 or 12.5"),
    ("[deploy]\nbudget = -3\n", "2:10: invalid budget `-3`: expected US dollars such as 100 or 12.5"),
    ("[workload]\nfill = 101\n", "2:8: `fill` must be from 1 to 100 percent"),
    ("[workload]\nreplica_rate = 0\n", "2:16: `replica_rate` must be larger than zero"),
    (
        "[workload]\nmeasured_on = \"T4\"\nspeeds = { H100 = -2 }\n",
        "3:19: invalid speed `-2`: expected a factor such as 0.5 or 2",
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
        "3:18: an unpacked image is not smaller than `image_size`",
    ),
    ("[workload]\nbegins = \"2026-02-30\"\n", "2:10: "),
    ("[deploy]\nregion = \"westeurope\"\n", "2:1: unknown field `region`; did you mean `regions`?"),
];

#[test]
fn each_contradiction_is_reported_with_its_location() {
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
fn a_missing_key_is_not_a_contradiction() {
    for text in ["[workload]\nitems = 5\n", "[workload]\nrate = 5\n", "[data]\nstorage = \"blob-hot\"\n"] {
        assert!(read(text).is_ok(), "{text}");
    }
}
