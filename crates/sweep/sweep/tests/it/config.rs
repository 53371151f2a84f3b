//! The section `[sweep]`: what it becomes, and how mistakes are reported.

use std::time::Duration;

use cudock_base::Usd;
use cudock_project::Project;
use cudock_sweep::policy::{Bandit, EvaluationSchedule, Slack};
use cudock_sweep::sampler::Tpe;
use cudock_sweep::{
    Condition, Distribution, Goal, MetricFormat, MetricSource, ParameterValue, PassMode, SamplerKind,
    SweepPlan, TerminationPolicy,
};
use cudock_sweep_run::trial_words;

use crate::support::text;

fn read(content: &str) -> Result<SweepPlan, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cudock.toml");
    std::fs::write(&path, content).unwrap();
    let plan = Project::read(&path).and_then(|project| project.sweep_plan());
    plan.map_err(|error| error.to_string().rsplit_once("cudock.toml:").unwrap().1.to_owned())
}

/// A valid section that tests append to; the tables of `extra` come last.
fn with(keys: &str, parameters: &str, tables: &str) -> Result<SweepPlan, String> {
    read(&format!(
        "[sweep]\ncommand = [\"train\"]\nobjectives = [{{ metric = \"loss\", goal = \"minimize\" }}]\n{keys}\n\
         [sweep.parameters]\n{parameters}\n{tables}\n"
    ))
}

const LR: &str = "lr = { uniform = [0, 1] }";
const LIMIT: &str = "[sweep.limits]\ntrials = 9\n";

#[test]
fn everything_is_read() {
    let plan = read(
        r#"
        name = "digits"
        [workload]
        image = "team/train:1"
        [sweep]
        command = ["python", "train.py"]
        pass = "environment"
        objectives = [{ metric = "accuracy", goal = "maximize" }]
        metrics = { from = "file", path = "out/metrics.jsonl", format = "json" }
        sampler = "tpe"
        seed = 3
        startup_trials = 5
        gpus_per_trial = 1
        trials_per_gpu = 2
        gpu_memory = "10GiB"
        retries = 2
        early_termination = { policy = "bandit", slack_factor = 0.2, evaluation_interval = 2, delay_evaluation = 5 }
        limits = { trials = 27, concurrent = 3, trial_timeout = "20m", timeout = "8h", dollars = 12.5 }
        [sweep.parameters]
        optimizer = { choice = ["adam", "sgd"] }
        batch = { choice = [16, 32] }
        lr = { loguniform = [1e-4, 1e-1] }
        a_momentum = { uniform = [0.8, 0.99], when = { optimizer = ["sgd"] } }
        units = { qloguniform = [16, 512, 16] }
        noise = { normal = [0, 1] }
        layers = { randint = [1, 5] }
        "#,
    )
    .unwrap();
    assert_eq!((plan.name.as_str(), plan.image.as_deref()), ("digits", Some("team/train:1")));
    assert_eq!(plan.pass, PassMode::Environment);
    assert_eq!((plan.objectives[0].metric.as_str(), plan.objectives[0].goal), ("accuracy", Goal::Maximize));
    assert_eq!(
        plan.metrics,
        MetricSource::File { path: "out/metrics.jsonl".into(), format: MetricFormat::Json }
    );
    assert_eq!((plan.sampler, plan.seed), (SamplerKind::Tpe(Tpe { startup_trials: 5 }), 3));
    assert_eq!((plan.trials_per_gpu, plan.gpu_memory, plan.retries), (2, Some(10 << 30), 2));
    let schedule = EvaluationSchedule { interval: 2, delay: 5 };
    assert_eq!(plan.policy, Some(TerminationPolicy::Bandit(Bandit { slack: Slack::Factor(0.2), schedule })));
    assert_eq!(plan.limits.trial_timeout, Some(Duration::from_secs(1200)));
    assert_eq!(plan.limits.dollars, Some(Usd::from_cents(1250)));
    let names: Vec<&str> = plan.space.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    assert_eq!(names, ["batch", "layers", "lr", "noise", "optimizer", "a_momentum", "units"]);
    let momentum = plan.space.parameters.iter().find(|parameter| parameter.name == "a_momentum").unwrap();
    assert_eq!(
        momentum.conditions,
        [Condition { parent: "optimizer".to_owned(), values: vec![text("sgd")] }]
    );
    let layers = plan.space.parameters.iter().find(|parameter| parameter.name == "layers").unwrap();
    assert_eq!(layers.distribution, Distribution::RandInt { start: 1, end: 5 });
    let written = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<SweepPlan>(&written).unwrap(), plan);
    assert!(plan.check().is_ok());
}

#[test]
fn defaults_are_filled_in() {
    let plan = with("", LR, LIMIT).unwrap();
    assert_eq!((plan.pass, plan.sampler, plan.seed), (PassMode::Arguments, SamplerKind::Random, 0));
    assert_eq!(plan.metrics, MetricSource::Stdout(MetricFormat::Pairs));
    assert_eq!((plan.gpus_per_trial, plan.trials_per_gpu, plan.retries, plan.policy), (1, 1, 1, None));
    // A third of the trials is random if there are few.
    let tpe = with("sampler = \"tpe\"", LR, LIMIT).unwrap();
    assert_eq!(tpe.sampler, SamplerKind::Tpe(Tpe { startup_trials: 3 }));
    let grid = with("sampler = \"grid\"", "a = { choice = [true, 1, 2.5, \"x\"] }", "").unwrap();
    assert_eq!(grid.limits.trials, None);
    let mlflow = with("metrics = { from = \"mlflow\" }", LR, LIMIT).unwrap();
    assert_eq!(mlflow.metrics, MetricSource::Mlflow { path: "mlruns".into() });
}

#[test]
fn a_plan_that_flags_have_changed_is_checked_again() {
    let mut plan = with("", LR, LIMIT).unwrap();
    plan.limits.trials = None;
    assert!(plan.check().unwrap_err().to_string().starts_with("nothing ends the sweep"));
}

#[test]
fn malformed_spaces_are_rejected_with_the_key_and_the_fix() {
    for (parameters, expected) in [
        ("", "5:1: `parameters` is empty: add one such as"),
        ("lr = {}", "6:6: parameter `lr` has no distribution"),
        (
            "lr = { uniform = [0, 1], choice = [1] }",
            "6:35: parameter `lr` has two distributions, `uniform` and `choice`: keep one",
        ),
        ("lr = { unifrom = [0, 1] }", "6:8: unknown field `unifrom`; did you mean `uniform`?"),
        ("lr = { uniform = [1, 0] }", "6:18: `uniform` of `lr` is empty: 1 is above 0; write [0, 1]"),
        ("lr = { uniform = [0] }", "6:18: `uniform` of `lr` takes [min, max], and has 1 numbers"),
        ("lr = { quniform = [0, 1] }", "6:19: `quniform` of `lr` takes [min, max, step]"),
        ("lr = { quniform = [0, 1, 0] }", "6:19: the step of `lr` is 0: it must be above zero"),
        ("lr = { quniform = [1, 2, 5] }", "6:19: no multiple of 5 is between 1 and 2: choose a smaller step"),
        ("lr = { loguniform = [0, 1] }", "6:21: `loguniform` of `lr` begins at 0, which has no logarithm"),
        ("lr = { normal = [0, -1] }", "6:17: the deviation of `lr` is -1: it must be above zero"),
        ("lr = { normal = [nan, 1] }", "6:17: `normal` of `lr` has the value NaN: only finite numbers"),
        ("n = { randint = [5, 5] }", "6:17: `randint` of `n` is empty: 5 is not below 5, which is excluded"),
        ("n = { randint = [5] }", "6:17: `randint` of `n` takes [start, end], and has 1 numbers"),
        ("c = { choice = [] }", "6:16: `choice` of `c` is empty: list at least one value"),
        ("c = { choice = [1, 2, 1] }", "6:16: `choice` of `c` has the value 1 twice: remove one"),
        ("c = { choice = [inf] }", "6:16: `choice` of `c` has the value inf: only finite"),
        ("c = { choice = [[1]] }", "6:17: invalid type: sequence, expected a string, a number or a boolean"),
        ("n = { sizes = [] }", "6:15: `sizes` of `n` is empty: list at least one value"),
        ("n = { sizes = [\"a\", \"a\"] }", "6:15: `sizes` of `n` has the value a twice: remove one"),
        (
            "n = { sizes = [\"a\"], when = { b = [1] } }\nb = { choice = [1] }",
            "6:29: every trial runs on a machine, so `n` always exists: remove `when`",
        ),
        (
            "a = { sizes = [\"x\"] }\nb = { sizes = [\"x\"] }",
            "7:15: `a` and `b` both choose the size of a trial's machine: keep one",
        ),
        ("\"a b\" = { choice = [1] }", "6:9: invalid parameter name `a b`: use letters"),
        (
            "a = { choice = [1], when = { lr = [1] } }\nlr = { uniform = [0, 1] }",
            "6:35: `a` depends on `lr`, which is continuous",
        ),
        (
            "a = { choice = [1], when = { optimiser = [1] } }\noptimizer = { choice = [1] }",
            "6:42: `a` depends on `optimiser`, which is not a parameter; did you mean `optimizer`?",
        ),
        (
            "a = { choice = [1], when = { b = [3] } }\nb = { choice = [1, 2] }",
            "6:34: `b` never has the value 3",
        ),
        (
            "a = { choice = [1], when = { b = [] } }\nb = { choice = [1, 2] }",
            "6:34: `a` never exists: list a value",
        ),
        (
            "a = { choice = [1], when = { b = [1] } }\nb = { choice = [1], when = { a = [1] } }",
            "6:28: `a` and `b` depend on each other: remove one `when`",
        ),
    ] {
        let error = with("", parameters, LIMIT).expect_err(parameters);
        assert!(error.starts_with(expected), "{parameters}\n{error}\nexpected {expected}");
    }
}

#[test]
fn sizes_are_a_choice_that_changes_fastest() {
    let parameters = "a_node = { sizes = [\"NC4as_T4_v3\", \"NC24ads_A100_v4\"] }\nlr = { choice = [1, 2] }";
    let plan = with("sampler = \"grid\"", parameters, LIMIT).unwrap();
    assert_eq!(plan.machine.as_deref(), Some("a_node"));
    assert_eq!(plan.sizes(), ["NC4as_T4_v3", "NC24ads_A100_v4"]);
    let names: Vec<&str> = plan.space.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    assert_eq!(names, ["lr", "a_node"]);
    // A program that knows nothing of machines gets no argument for them.
    let values = [("lr", ParameterValue::Int(1)), ("a_node", text("NC4as_T4_v3"))];
    let values = values.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
    assert_eq!(trial_words(&plan, &values), ["train", "--lr=1"]);
    let mut few = plan;
    few.limits.concurrent = Some(1);
    let error = few.check().unwrap_err().to_string();
    assert_eq!(error, "`concurrent` is 1 and `a_node` has 2 sizes, each of which needs a machine: raise it");
}

#[test]
fn contradictions_are_rejected_with_the_key_and_the_fix() {
    for (keys, tables, expected) in [
        ("command = []", LIMIT, "duplicate key"),
        ("sampler = \"gird\"", LIMIT, "4:11: unknown variant `gird`; did you mean `grid`?"),
        ("sampler = \"grid\"", LIMIT, "4:11: a grid needs finitely many values, and `lr` is continuous"),
        ("startup_trials = 5", LIMIT, "4:18: `startup_trials` is for `sampler = \"tpe\"`"),
        ("sampler = \"tpe\"\nstartup_trials = 9", LIMIT, "5:18: all 9 trials would be random"),
        (
            "trials_per_gpu = 2",
            LIMIT,
            "4:18: trials that share a GPU can use up its memory: set `gpu_memory`",
        ),
        (
            "trials_per_gpu = 2\ngpus_per_trial = 2\ngpu_memory = \"1GB\"",
            LIMIT,
            "4:18: `gpus_per_trial` is above 1",
        ),
        (
            "gpus_per_trial = 0\ntrials_per_gpu = 2",
            LIMIT,
            "5:18: `gpus_per_trial = 0` leaves no GPU to share",
        ),
        ("metrics = { path = \"m\" }", LIMIT, "4:20: `path` is for `from = \"file\" or \"mlflow\"`"),
        ("metrics = { from = \"file\" }", LIMIT, "4:1: `from = \"file\"` needs a `path`"),
        ("metrics = { format = \"regex\" }", LIMIT, "4:1: `format = \"regex\"` needs a `pattern`"),
        (
            "metrics = { format = \"regex\", pattern = \"(\" }",
            LIMIT,
            "4:41: invalid regular expression: unclosed group",
        ),
        (
            "metrics = { format = \"regex\", pattern = \"a\" }",
            LIMIT,
            "4:41: the pattern has no group `value`",
        ),
        ("", "", "1:2: nothing ends the sweep: set `trials`, `timeout` or `dollars`"),
        ("", "[sweep.limits]\ntrials = 0\n", "8:10: `trials` is zero, so nothing would run"),
        (
            "",
            "[sweep.limits]\ntrials = 2\nconcurrent = 3\n",
            "9:14: `concurrent` is 3 and `trials` only 2: lower it",
        ),
        (
            "",
            "[sweep.limits]\ntimeout = \"1h\"\ntrial_timeout = \"2h\"\n",
            "9:17: `trial_timeout` is longer than",
        ),
        ("", "[sweep.limits]\ndollars = -1\n", "8:11: invalid amount `-1`: expected US dollars such as"),
        ("", "[sweep.limits]\ndollars = nan\n", "8:11: invalid amount `NaN`"),
    ] {
        let error = with(keys, LR, tables).expect_err(keys);
        assert!(
            error.contains(expected) && !error.is_empty(),
            "{keys}\n{tables}\n{error}\nexpected {expected}"
        );
    }
}

#[test]
fn policies_are_rejected_with_the_key_and_the_fix() {
    for (keys, expected) in [
        ("policy = \"bandit\"", "9:8: `policy = \"bandit\"` needs `slack_factor` or `slack_amount`"),
        ("policy = \"bandit\"\nslack_factor = 1\nslack_amount = 1", "12:16: `slack_factor` and"),
        ("policy = \"bandit\"\nslack_factor = -0.5", "11:16: `slack_factor` is -0.5: it must be above zero"),
        ("policy = \"median\"\nslack_factor = 1", "11:16: `slack_factor` is for bandit: remove it"),
        ("policy = \"median\"\nevaluation_interval = 0", "11:23: `evaluation_interval` must be at least 1"),
        ("policy = \"truncation\"", "9:8: `policy = \"truncation\"` needs `truncation_percentage`"),
        (
            "policy = \"truncation\"\ntruncation_percentage = 100",
            "11:25: `truncation_percentage` is 100: it must be from 1 to 99",
        ),
        ("policy = \"hyperband\"", "9:8: `policy = \"hyperband\"` needs `max_steps`"),
        ("policy = \"asha\"\nmax_steps = 1", "11:13: `max_steps` is 1: it must be above `min_steps`"),
        ("policy = \"asha\"\nreduction_factor = 1", "11:20: `reduction_factor` must be at least 2"),
        ("policy = \"asha\"\ndelay_evaluation = 1", "11:20: `delay_evaluation` is for bandit, median"),
    ] {
        let error = with("", LR, &format!("{LIMIT}[sweep.early_termination]\n{keys}\n")).expect_err(keys);
        assert!(error.starts_with(expected), "{keys}\n{error}\nexpected {expected}");
    }
}

#[test]
fn objectives_and_names_are_checked() {
    let section =
        |keys: &str| format!("[sweep]\n{keys}\n[sweep.parameters]\nPATH = {{ choice = [1] }}\n{LIMIT}");
    let one = "{ metric = \"a\", goal = \"maximize\" }";
    for (keys, expected) in [
        (format!("objectives = [{one}]"), "1:2: `command` is empty"),
        ("command = [\"a\"]".to_owned(), "1:2: `objectives` is empty"),
        (
            format!("command = [\"a\"]\nobjectives = [{one}, {one}]"),
            "`a` is an objective already: remove one",
        ),
        (
            "command = [\"a\"]\nobjectives = [{ metric = \"a\", goal = \"max\" }]".to_owned(),
            "unknown variant `max`",
        ),
        (
            format!("command = [\"a\"]\npass = \"environment\"\nobjectives = [{one}]"),
            "6:8: the variable `PATH` has a meaning already: rename the parameter",
        ),
        (
            format!(
                "command = [\"a\"]\nsampler = \"tpe\"\nobjectives = [{one}, {{ metric = \"b\", goal = \"minimize\" }}]"
            ),
            "3:11: `tpe` looks at one objective",
        ),
        (
            format!(
                "command = [\"a\"]\nearly_termination = {{ policy = \"median\" }}\n\
                 objectives = [{one}, {{ metric = \"b\", goal = \"minimize\" }}]"
            ),
            "3:32: early termination compares trials by one objective",
        ),
    ] {
        let error = read(&section(&keys)).expect_err(&keys);
        assert!(error.contains(expected), "{keys}\n{error}\nexpected {expected}");
    }
    let error = read("name = \"a\"\n").unwrap_err();
    assert!(error.starts_with("1:1: there is no `[sweep]` section: add one"), "{error}");
    let too_many: String = (0..33).map(|index| format!("p{index} = {{ uniform = [0, 1] }}\n")).collect();
    let error = with("sampler = \"sobol\"", &too_many, LIMIT).unwrap_err();
    assert!(error.starts_with("4:11: `sobol` supports 32 parameters, and there are 33"), "{error}");
    let large = "a = { randint = [0, 2000] }\nb = { randint = [0, 2000] }";
    let error = with("sampler = \"grid\"", large, "").unwrap_err();
    assert!(error.starts_with("4:11: a grid of 4000000 combinations is too large"), "{error}");
}

#[test]
fn values_are_written_as_programs_read_them() {
    for (value, expected) in [
        (ParameterValue::Bool(true), "true"),
        (ParameterValue::Int(-3), "-3"),
        (ParameterValue::Float(0.1), "0.1"),
        (ParameterValue::Float(2.0), "2.0"),
        (ParameterValue::Float(1e-7), "1e-7"),
        (text("a b"), "a b"),
    ] {
        assert_eq!(value.to_string(), expected);
    }
}
