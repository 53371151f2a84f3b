//! The JSON Schema of `cudock.toml`, which must agree with the parser.

use std::path::PathBuf;
use std::process::Command;

use boon::{Compiler, ErrorKind, SchemaIndex, Schemas, ValidationError};
use proptest::prelude::*;
use serde_json::Value;

use crate::read;

const VALID: &[&str] = &[
    "",
    "name = \"digits\"\n[workload]\nmodel = \"model.onnx\"\n",
    "[workload]\nkind = \"job\"\nduration = \"5h 30m\"\nmeasured_on = \"T4\"\nspeeds = { H100 = 2 }\n",
    "[workload]\nbegins = 2026-12-01\n",
    "[workload]\nbegins = \"2026-12-01\"\n",
    "[workload]\nrate = \"36/h\"\nreplica_rate = 40\nfill = 100\n",
    "[workload]\nrate = { day = 5, from = \"8:00\", to = \"24:00\" }\n",
    "[workload]\nrate = [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,\"4/min\"]\n",
    "[needs]\ncapability = \"8.6\"\narchitecture = \"arm64\"\nprecision = \"bf16\"\ngpu = \"T4\"\n",
    "[needs]\ncapability = { least = 7.0, greatest = \"7.5\" }\ngpu = [\"A100-80\", \"H100\"]\n",
    "[data]\nsize = \"1.5TiB\"\nrate = \"200 MB/s\"\naccess = \"stage\"\n",
    "[start]\nready = \"0s\"\njit = \"250µs\"\n",
    "[deploy]\nspot = true\nregions = \"westeurope\"\nbudget = 12.5\nmanagement = \"managed\"\n",
    "[deploy]\nspot = \"only\"\nservices = [\"ml\", \"vm\"]\ntarget = \"container-apps\"\nttl = \"2h\"\n",
    "[deploy.spot]\nallow = \"only\"\nevictions = 0.05\ncheckpoint_every = \"30m\"\ncheckpoint_takes = \"0s\"\n",
    "[targets.lab]\nservice = \"ml\"\nworkspace = \"team/lab\"\ncluster = \"gpus\"\nregions = [\"westeurope\"]\n",
    "[serve]\nallow_hosts = [\"models.example\", \"10.0.0.5\", \"[fe80::1]\", \"::1\"]\n",
    "[serve]\nlisten = [\"0.0.0.0:80\", \"[::1]:8000\"]\ndevice = \"tensorrt\"\npreferred = [1, 8]\ntry = { range = [0, 16] }\n",
    "[serve.image]\nresize = 256\ncrop = [224, 192]\nmean = [0.5]\nlayout = \"nhwc\"\ncolor = \"gray\"\n",
    "[gateway]\nto = [\"http://localhost:5000\"]\nrow_rank = 3\nhold = \"3m\"\nwake = [\"docker\", \"start\"]\n",
    "[image]\npython = \"3.13\"\nrequirements = \"requirements.txt\"\ntargets = [\"T4\", \"sm_90\"]\narch = \"arm64\"\n",
    "[image]\nprogram = \"build/app\"\nports = [8000]\nuser = \"1000\"\nfiles = { \"/data\" = \"data\" }\nrules = { tests = false }\n",
    "[serve]\nlabels = \"labels.txt\"\nscores = \"softmax\"\n[serve.text]\ntokenizer = \"tokenizer.json\"\n",
    "[sweep]\ncommand = [\"a\"]\npass = \"file\"\nobjectives = [{ metric = \"a\", goal = \"minimize\" }]\ngpu_memory = \"1GB\"\n",
    "[sweep]\nobjectives = [{ metric = \"a\", goal = \"minimize\", target = 0.5 }]\nparameters = { n = { sizes = [\"NC4as_T4_v3\"] } }\n",
    "[sweep]\nsampler = \"tpe\"\nseed = 3\n[sweep.parameters]\na = { choice = [1, 2.5, true, \"x\"], when = { b = [1] } }\n",
    "[sweep.limits]\ntrials = 27\ntimeout = \"8h\"\ndollars = 12.5\n[sweep.metrics]\nfrom = \"mlflow\"\npath = \"runs\"\n",
    "[sweep.early_termination]\npolicy = \"bandit\"\nslack_factor = 0.2\nevaluation_interval = 2\n",
];

/// Invalid texts, each with the key that is reported.
const BROKEN: &[(&str, &str)] = &[
    ("name = 5\n", "name"),
    ("[workload]\nkind = \"train\"\n", "workload.kind"),
    ("[workload]\nduration = \"-1s\"\n", "workload.duration"),
    ("[workload]\nduration = \"0s\"\n", "workload.duration"),
    ("[workload]\nduration = \"5\"\n", "workload.duration"),
    ("[workload]\nduration = \"30m5h\"\n", "workload.duration"),
    ("[workload]\nduration = 40\n", "workload.duration"),
    ("[workload]\nfill = 101\n", "workload.fill"),
    ("[workload]\nreplica_rate = 0\n", "workload.replica_rate"),
    ("[workload]\nreplica_rate = \"4/year\"\n", "workload.replica_rate"),
    ("[workload]\nrate = [1, 2]\n", "workload.rate"),
    ("[workload]\nrate = -5\n", "workload.rate"),
    ("[workload]\nrate = { day = 5, from = \"08:30\", to = \"20:00\" }\n", "workload.rate.from"),
    ("[workload]\nrate = { day = 5, noon = 1, from = \"08:00\", to = \"20:00\" }\n", "workload.rate.noon"),
    ("[workload]\nbegins = \"2026-02-30\"\n", "workload.begins"),
    ("[workload]\nbegins = 2026-12-01T08:00:00\n", "workload.begins"),
    ("[workload]\nmeasured_on = \"T4\"\nspeeds = { H100 = -2 }\n", "workload.speeds.H100"),
    ("[targets.lab]\nservice = \"mars\"\n", "targets.lab.service"),
    ("[needs]\ngpus = 0\n", "needs.gpus"),
    ("[needs]\ngpus = -1\n", "needs.gpus"),
    ("[needs]\ngpu_memory = \"16 gigs\"\n", "needs.gpu_memory"),
    ("[needs]\nmemory = \"0GB\"\n", "needs.memory"),
    ("[needs]\nprecision = \"bf17\"\n", "needs.precision"),
    ("[needs]\narchitecture = \"x86_46\"\n", "needs.architecture"),
    ("[needs]\ncapability = \"sm_90\"\n", "needs.capability"),
    ("[needs]\ncapability = { least = \"8\" }\n", "needs.capability.least"),
    ("[needs]\nnvlink = \"yes\"\n", "needs.nvlink"),
    ("[data]\nrate = \"200MB\"\n", "data.rate"),
    ("[data]\naccess = \"sometimes\"\n", "data.access"),
    ("[deploy]\nregion = \"westeurope\"\n", "deploy.region"),
    ("[deploy]\nregions = 5\n", "deploy.regions"),
    ("[deploy]\ntarget = \"lokal\"\n", "deploy.target"),
    ("[deploy]\nbudget = -3\n", "deploy.budget"),
    ("[deploy]\nspot = \"onyl\"\n", "deploy.spot"),
    ("[deploy]\nspot = { evictions = -1 }\n", "deploy.spot.evictions"),
    ("[serve]\nmax_bacth = 3\n", "serve.max_bacth"),
    ("[serve]\nmax_batch = \"many\"\n", "serve.max_batch"),
    ("[serve]\nlisten = [\"localhost\"]\n", "serve.listen.0"),
    ("[serve]\nallow_hosts = [\"https://models.example\"]\n", "serve.allow_hosts.0"),
    ("[gateway]\nallow_hosts = [\"models.example:80\"]\n", "gateway.allow_hosts.0"),
    ("[gateway]\nallow_hosts = [\"*\"]\n", "gateway.allow_hosts.0"),
    ("[serve.try]\nrange = [1]\n", "serve.try.range"),
    ("[gateway]\nto = \"localhost\"\n", "gateway.to"),
    ("[gateway]\nrow_rank = -1\n", "gateway.row_rank"),
    ("[gateway]\noutput_key = [\"a\"]\n", "gateway.output_key"),
    ("[serve.image]\nresize = 0\n", "serve.image.resize"),
    ("[serve.image]\nresize = [224]\n", "serve.image.resize"),
    ("[serve.image]\ncrop = [224, 224, 3]\n", "serve.image.crop"),
    ("[serve.image]\ncolor = \"grey\"\n", "serve.image.color"),
    ("[serve.text]\nmax_length = 16\n", "serve.text"),
    ("[sweep]\ncommand = \"python train.py\"\n", "sweep.command"),
    ("[sweep]\nsampler = \"bayes\"\n", "sweep.sampler"),
    ("[sweep.parameters]\nlr = { unifrom = [0, 1] }\n", "sweep.parameters.lr.unifrom"),
    ("[sweep.parameters]\nlr = { uniform = 1 }\n", "sweep.parameters.lr.uniform"),
    ("[sweep.limits]\ntimeout = \"8\"\n", "sweep.limits.timeout"),
    ("[sweep.early_termination]\npolicy = \"bandid\"\n", "sweep.early_termination.policy"),
    ("[image]\npython = \"3\"\n", "image.python"),
    ("[image]\nrules = { tests = 1 }\n", "image.rules.tests"),
    ("[image]\nports = [70000]\n", "image.ports.0"),
    ("[image]\narch = \"sparc\"\n", "image.arch"),
    ("[image]\nrequirement = \"a.txt\"\n", "image.requirement"),
];

/// The schema, ready for use. Formats are checked, as editors do.
struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Validator {
    fn new() -> Self {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.enable_format_assertions();
        compiler.add_resource("cudock.json", cudock_project::json_schema().to_value()).unwrap();
        let index = compiler.compile("cudock.json", &mut schemas).unwrap();
        Self { schemas, index }
    }

    /// The keys that do not match.
    fn errors(&self, text: &str) -> Vec<String> {
        let document = json(toml::Value::Table(toml::from_str(text).unwrap()));
        let mut keys = Vec::new();
        if let Err(error) = self.schemas.validate(&document, self.index) {
            collect(&error, &mut keys);
        }
        keys
    }
}

fn collect(error: &ValidationError<'_, '_>, keys: &mut Vec<String>) {
    for cause in &error.causes {
        collect(cause, keys);
    }
    if error.causes.is_empty() {
        let mut key = error.instance_location.to_string();
        if let ErrorKind::AdditionalProperties { got } = &error.kind {
            key = format!("{key}/{}", got[0]);
        }
        keys.push(key.trim_start_matches('/').replace('/', "."));
    }
}

/// A TOML value as validators see it: dates are strings.
fn json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(list) => list.into_iter().map(json).collect(),
        toml::Value::Table(table) => table.into_iter().map(|(key, value)| (key, json(value))).collect(),
    }
}

/// The files in `examples`.
fn examples() -> Vec<PathBuf> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    let plans = std::fs::read_dir(directory.join("plan")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        plans.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    let served = ["digits", "image-classifier", "scikit-learn", "text-classifier"];
    files.extend(served.map(|name| directory.join(name).join("cudock.toml")));
    files
}

#[test]
fn the_schema_accepts_what_the_parser_accepts() {
    let validator = Validator::new();
    let examples = examples();
    assert!(examples.len() > 5, "{examples:?}");
    let examples = examples.iter().map(|path| std::fs::read_to_string(path).unwrap());
    for text in VALID.iter().map(|text| (*text).to_owned()).chain(examples) {
        assert_eq!(read(&text).err(), None, "{text}");
        assert_eq!(validator.errors(&text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn the_schema_rejects_what_the_parser_rejects_at_the_same_key() {
    let validator = Validator::new();
    for (text, key) in BROKEN {
        let errors = validator.errors(text);
        // Alternatives that do not apply at all are rejected further up.
        let deepest = errors.iter().max_by_key(|error| error.len());
        assert_eq!(deepest.map(String::as_str), Some(*key), "{text}{errors:?}");
        assert!(errors.iter().all(|error| key.starts_with(error.as_str())), "{text}{errors:?}");

        let error = read(text).expect_err(text);
        let line: usize = error.split(':').nth(1).unwrap().parse().unwrap();
        let name = key.trim_end_matches(".0").rsplit('.').next().unwrap();
        assert!(text.lines().nth(line - 1).unwrap().contains(name), "{text}{error}");
    }
}

#[test]
fn check_jsonschema_agrees_with_the_parser() {
    let Some(program) = cudock_testkit::require_program("check-jsonschema") else { return };
    let directory = tempfile::tempdir().unwrap();
    let schema = directory.path().join("schema.json");
    std::fs::write(&schema, cudock_project::json_schema().to_value().to_string()).unwrap();
    let run = |files: &[PathBuf]| {
        let mut command = Command::new(&program);
        command.args(["--output-format", "json", "--schemafile"]).arg(&schema).args(files);
        command.output().unwrap()
    };
    let accepted = run(&examples());
    assert!(accepted.status.success(), "{}", String::from_utf8_lossy(&accepted.stdout));

    let file = |index: usize| directory.path().join(format!("broken-{index}.toml"));
    for (index, (text, _)) in BROKEN.iter().enumerate() {
        std::fs::write(file(index), text).unwrap();
    }
    let rejected = run(&(0..BROKEN.len()).map(file).collect::<Vec<_>>());
    let report: Value = serde_json::from_slice(&rejected.stdout).unwrap();
    for (index, (text, key)) in BROKEN.iter().enumerate() {
        let name = file(index).display().to_string();
        let errors =
            report["errors"].as_array().unwrap().iter().filter(|error| error["filename"] == name.as_str());
        let errors: Vec<String> = errors.map(ToString::to_string).collect();
        let last = key.trim_end_matches(".0").rsplit('.').next().unwrap();
        assert!(!errors.is_empty() && errors.iter().any(|error| error.contains(last)), "{text}{errors:?}");
    }
}

/// Whether parser and schema accept a string at a key.
fn both(validator: &Validator, table: &str, key: &str, value: &str) -> (bool, bool) {
    let text = format!("[{table}]\n{key} = \"{value}\"\n");
    (read(&text).is_ok(), validator.errors(&text).is_empty())
}

#[test]
fn patterns_accept_the_quantities_that_the_parser_accepts() {
    let validator = Validator::new();
    proptest!(|(
        time in " ?([0-9]{0,3}\\.?[0-9]{0,2} ?(d|h|m|s|ms|us|µs|x)? ?){0,4}",
        size in " ?[0-9]{0,3}\\.?[0-9]{0,2} ?(B|KiB|kiB|MB|kB|TB|PB)? ?",
        rate in " ?\\+?[0-9]{0,2}\\.?[0-9]{0,2}(e[0-9])? ?(/ ?(s|sec|min|hour|h|day)? ?)?",
    )| {
        for (table, key, value) in [("start", "ready", &time), ("start", "weights", &size), ("workload", "rate", &rate)] {
            let (parser, schema) = both(&validator, table, key, value);
            prop_assert_eq!(parser, schema, "{} = {:?}", key, value);
        }
    });
}
