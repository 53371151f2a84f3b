//! The command-line arguments.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, Args, Command, FromArgMatches, Parser, Subcommand, ValueEnum};
use cudock_facts::formats::ServiceFormat;
use cudock_facts::version::DriverVersion;

use crate::env;
use crate::failure::Failure;
use crate::output::{DoctorFormat, FindingFormat, Format, PlanFormat};
use crate::verbs::{
    BenchArgs, BuildArgs, CdiArgs, CdiHookArgs, CompletionArgs, CopyArgs, CostArgs, CpArgs, DownArgs,
    ExecArgs, ExportArgs, GatewayArgs, GcArgs, GroupsArgs, ImagesArgs, InitArgs, InspectContainerArgs,
    JoinArgs, KillArgs, LintArgs, LockArgs, LogsArgs, LspArgs, ManArgs, MigrateArgs, ModelsArgs, MonitorArgs,
    PlanArgs, PricesArgs, PruneArgs, PsArgs, PullArgs, PushArgs, RestartArgs, ResumeArgs, RmArgs, RunArgs,
    RuntimeArgs, SchemaArgs, ServeArgs, SignArgs, StartArgs, StatsArgs, StopArgs, SuperviseArgs, SweepArgs,
    TopArgs, UpArgs, VerifyArgs, VolumeArgs, WaitArgs,
};

/// Checks, plans, runs and serves CUDA workloads in containers
///
/// Exit codes: 0 success or yes; 1 the answer is no; 2 invalid arguments or input; 3 system or network failure.
#[derive(Debug, Parser)]
#[command(name = "cudock", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The arguments of one verb. Parsing them alone saves the description of all others, which takes about a millisecond.
#[derive(Debug, Parser)]
pub(crate) struct SingleVerb<A: Args> {
    #[command(flatten)]
    pub(crate) args: A,
}

impl Cli {
    /// Parses the arguments of one verb, with those of all verbs, as [`SingleVerb`] does. `None` if they are invalid or ask
    /// for help, for which all verbs have to be described.
    pub(crate) fn parse_verb<A: Args>(
        args: impl Iterator<Item = OsString>,
        verb: fn(A) -> Verb,
    ) -> Option<Self> {
        let mut command = A::augment_args(Command::new("cudock"));
        let global = GlobalArgs::augment_args(Command::new("cudock"));
        // Some verbs have a text of their own for one of these.
        let is_new = |arg: &&Arg| !command.get_arguments().any(|own| own.get_id() == arg.get_id());
        let new: Vec<Arg> = global.get_arguments().filter(is_new).cloned().collect();
        command = command.args(new);
        let matches = command.try_get_matches_from(args).ok()?;
        let args = A::from_arg_matches(&matches).ok()?;
        Some(Self { global: GlobalArgs::from_arg_matches(&matches).ok()?, verb: verb(args) })
    }
}

/// Arguments that every verb takes.
#[derive(Debug, Args)]
pub(crate) struct GlobalArgs {
    /// Use the fact tables in this directory over the embedded ones
    #[arg(long, global = true, value_name = "DIR", env = env::FACTS)]
    pub(crate) facts: Option<PathBuf>,

    /// Set the format of the report
    #[arg(long, global = true, value_enum, default_value_t = FormatArg::Text)]
    pub(crate) format: FormatArg,

    /// Print no progress and no notes; warnings and errors remain
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,

    /// Print more: the whole report where there is a longer one, and every network request
    #[arg(long, global = true)]
    pub(crate) verbose: bool,

    /// Color the output [default: on a terminal, unless `NO_COLOR` is set]
    #[arg(long, global = true, value_enum, value_name = "WHEN", hide_default_value = true, default_value_t)]
    pub(crate) color: ColorArg,
}

/// When to color the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorArg {
    #[default]
    Auto,
    Always,
    Never,
}

impl From<ColorArg> for anstream::ColorChoice {
    fn from(color: ColorArg) -> Self {
        match color {
            ColorArg::Auto => Self::Auto,
            ColorArg::Always => Self::Always,
            ColorArg::Never => Self::Never,
        }
    }
}

/// The format of the report as typed. Each verb supports some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Text for humans
    Text,
    /// One JSON object
    Json,
    /// CSV with the placements of `plan` or the trials of `sweep`
    Csv,
    /// For code scanners: the findings of `check`, `lint` and `migrate` as SARIF 2.1.0
    Sarif,
    /// For GitHub Actions: the findings of `check`, `doctor`, `lint` and `migrate` as workflow annotations
    Github,
    /// For GitLab: the findings of `check`, `lint` and `migrate` as a Code Quality report
    Gitlab,
    /// The default of `cdi generate`
    #[value(hide = true)]
    Yaml,
}

impl FormatArg {
    /// The format of a verb that has text and JSON alone.
    pub(crate) fn plain(self) -> Result<Format, Failure> {
        match self {
            Self::Text => Ok(Format::Text),
            Self::Json => Ok(Format::Json),
            _ => Err(self.unsupported()),
        }
    }

    /// The format of a verb that reports findings in files.
    pub(crate) fn findings(self) -> Result<FindingFormat, Failure> {
        match self {
            Self::Text => Ok(FindingFormat::Text),
            Self::Json => Ok(FindingFormat::Json),
            Self::Sarif => Ok(FindingFormat::Other(ServiceFormat::Sarif)),
            Self::Github => Ok(FindingFormat::Other(ServiceFormat::Github)),
            Self::Gitlab => Ok(FindingFormat::Other(ServiceFormat::Gitlab)),
            _ => Err(self.unsupported()),
        }
    }

    /// The format of `doctor`, whose findings are not in files.
    pub(crate) fn doctor(self) -> Result<DoctorFormat, Failure> {
        match self {
            Self::Text => Ok(DoctorFormat::Text),
            Self::Json => Ok(DoctorFormat::Json),
            Self::Github => Ok(DoctorFormat::Github),
            _ => Err(self.unsupported()),
        }
    }

    /// The format of `plan`.
    pub(crate) fn plan(self) -> Result<PlanFormat, Failure> {
        match self {
            Self::Text => Ok(PlanFormat::Text),
            Self::Json => Ok(PlanFormat::Json),
            Self::Csv => Ok(PlanFormat::Csv),
            _ => Err(self.unsupported()),
        }
    }

    /// The format of a CDI specification, which is YAML by default.
    pub(crate) fn specification(self) -> Result<Format, Failure> {
        match self {
            Self::Yaml => Ok(Format::Text),
            other => other.plain(),
        }
    }

    fn unsupported(self) -> Failure {
        let message = match self {
            Self::Csv => "--format csv is for `plan` and `sweep`",
            Self::Sarif | Self::Gitlab => "--format sarif and gitlab are for `check`, `lint` and `migrate`",
            Self::Github => "--format github is for `check`, `doctor`, `lint` and `migrate`",
            Self::Yaml => "--format yaml is for `cdi generate`",
            Self::Text | Self::Json => "this verb has no such format",
        };
        Failure::input(message).hint("use --format json")
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Check(CheckArgs),
    Lint(LintArgs),
    Lsp(LspArgs),
    Plan(Box<PlanArgs>),
    Sweep(Box<SweepArgs>),
    Migrate(MigrateArgs),
    Prices(PricesArgs),
    Facts(FactsArgs),
    Explain(ExplainArgs),
    Doctor(DoctorArgs),
    Inspect(InspectArgs),
    Slim(SlimArgs),
    Lock(LockArgs),
    Sign(SignArgs),
    Build(BuildArgs),
    Serve(Box<ServeArgs>),
    Gateway(Box<GatewayArgs>),
    Models(ModelsArgs),
    Bench(Box<BenchArgs>),
    Runtime(RuntimeArgs),
    Run(Box<RunArgs>),
    Cdi(CdiArgs),
    /// The hook that CDI specifications call.
    #[command(hide = true)]
    CdiHook(CdiHookArgs),
    Ps(PsArgs),
    Logs(LogsArgs),
    Exec(ExecArgs),
    Stop(StopArgs),
    Kill(KillArgs),
    Start(StartArgs),
    Restart(RestartArgs),
    Rm(RmArgs),
    Cp(CpArgs),
    Stats(StatsArgs),
    Top(TopArgs),
    Images(ImagesArgs),
    Pull(PullArgs),
    Push(PushArgs),
    Copy(CopyArgs),
    Volume(VolumeArgs),
    Prune(PruneArgs),
    Wait(WaitArgs),
    InspectContainer(InspectContainerArgs),
    Up(Box<UpArgs>),
    Down(DownArgs),
    Groups(GroupsArgs),
    Export(Box<ExportArgs>),
    Gc(GcArgs),
    Resume(ResumeArgs),
    Cost(CostArgs),
    Verify(VerifyArgs),
    Init(InitArgs),
    Completion(CompletionArgs),
    Man(ManArgs),
    Schema(SchemaArgs),
    /// The watcher of a container.
    #[command(hide = true)]
    Monitor(MonitorArgs),
    /// The supervisor of a group.
    #[command(hide = true)]
    Supervise(SuperviseArgs),
    /// A process that joins a container.
    #[command(hide = true)]
    Join(JoinArgs),
    /// What deletes a deployment from the inside.
    #[command(hide = true)]
    Watchdog(cudock_watchdog::WatchdogArgs),
    /// Published ports of a container.
    #[command(hide = true)]
    Forward {
        handover: String,
    },
    /// An engine of `serve`, in its own process.
    #[command(hide = true)]
    Engine,
    /// What ends with an engine, and with all that the engine has started.
    #[command(hide = true)]
    EngineOwner {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<OsString>,
    },
    /// The process that runs the trials of one slot.
    #[command(hide = true)]
    SweepWorker {
        lock: PathBuf,
    },
    /// The NVML query of `doctor`, in its own process.
    #[command(hide = true)]
    Nvml {
        library: Option<PathBuf>,
        /// List the processes on the GPUs instead of the GPUs.
        #[arg(long)]
        processes: bool,
    },
}

/// Check whether an image, a program or an environment will use a given GPU
///
/// Reads the files and runs nothing: prints the verdict, the expected error, the file that causes it, and the fix.
/// SUBJECT is an image (in a registry or a daemon, an OCI layout, a docker archive), a program, a library, a wheel, a
/// directory, or a dependency file such as a Dockerfile or requirements.txt. See docs/check.md.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(after_help = "Examples:
  cudock check build/app --host
  cudock check registry.example/team/app:1.4 --gpu T4 --gpu H100 --driver 535.161.08
  cudock check oci:./layout --size Standard_NC24ads_A100_v4
  cudock check app.tar --all-sizes
  cudock check torch-2.15.0-cp312-cp312-manylinux_2_28_x86_64.whl --gpu V100
  cudock check requirements.txt --gpu B200
  cudock check Dockerfile --gpu \"RTX 4090\" --driver 535 --format sarif > check.sarif
  cudock check requirements.txt --gpu T4 --format github
  cudock check . --gpu A100 --explain")]
pub(crate) struct CheckArgs {
    /// What to check; the prefixes `oci:`, `oci-archive:`, `docker-archive:`, `docker-daemon:`, `docker://` and `rootfs:` select a kind
    #[arg(value_name = "SUBJECT")]
    pub(crate) subject: String,

    /// Check for this GPU (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Vec<String>,

    /// Check for this Azure size (repeatable)
    #[arg(long, alias = "sku", value_name = "SIZE")]
    pub(crate) size: Vec<String>,

    /// Check for every available Azure size
    #[arg(long, alias = "all-skus")]
    pub(crate) all_sizes: bool,

    /// Check for this machine
    #[arg(long)]
    pub(crate) host: bool,

    /// Assume this driver: 535.161.08, or the last release of a branch: 580, R580
    #[arg(long, value_name = "VERSION")]
    pub(crate) driver: Option<DriverVersion>,

    /// Set how containers get the GPU: by NVIDIA's hook, which evaluates the image's requirements, or by CDI, which does not
    #[arg(long, value_enum, default_value_t = Start::Hook)]
    pub(crate) start: Start,

    /// Select this platform of a multi-platform image, such as linux/arm64
    #[arg(long, value_name = "OS/ARCH")]
    pub(crate) platform: Option<String>,

    /// Set a variable that overrides the image's own (repeatable)
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,

    /// Print the rules that were applied
    #[arg(long)]
    pub(crate) explain: bool,

    /// Use the cache only, and fetch nothing
    #[arg(long)]
    pub(crate) offline: bool,
}

/// How containers get the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Start {
    /// `docker run --gpus`, the NVIDIA runtime in legacy mode
    Hook,
    /// `--device nvidia.com/gpu=all`, podman, Kubernetes with CDI
    Cdi,
}

/// Look up a GPU, driver, CUDA version, image, framework build or Azure size
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock facts                                    the tables, their age and their rows
  cudock facts gpu T4
  cudock facts driver 535.161.08
  cudock facts cuda 12.4
  cudock facts image 12.4.1-cudnn-runtime-ubuntu22.04
  cudock facts torch 2.5.1
  cudock facts package cupy-cuda12x
  cudock facts size Standard_NC4as_T4_v3
  cudock facts size --gpu A100 --region westeurope
  cudock facts size --lifecycle
  cudock facts size Standard_NC24ads_A100_v4 --prices")]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct FactsArgs {
    /// What to look up; by default, list the tables
    #[arg(value_enum)]
    pub(crate) kind: Option<FactKind>,

    /// Name of the entry; by default, list all
    pub(crate) name: Option<String>,

    /// With `size`: list only those with this GPU
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Option<String>,

    /// With `size`: show prices of this region
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,

    /// With `size`: also list retired and undocumented sizes
    #[arg(long)]
    pub(crate) all: bool,

    /// With `size`: list every size by its retirement date, with its replacement
    #[arg(long)]
    pub(crate) lifecycle: bool,

    /// With `size` and a name: list the price in every region, cheapest first
    #[arg(long)]
    pub(crate) prices: bool,

    /// List the sources
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// The kinds of facts that can be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FactKind {
    /// A GPU: T4, H200, "NVIDIA A10"
    Gpu,
    /// A driver: 535.161.08, or a branch: 580
    Driver,
    /// A toolkit: 12.4, or a release: 12.4.1
    Cuda,
    /// A code target: `sm_90a`, `compute_80`
    Arch,
    /// A tag of nvidia/cuda
    Image,
    /// A PyTorch release: 2.5.1, 2.5.1+cu121
    Torch,
    /// A torchvision release
    Torchvision,
    /// A TensorFlow release
    Tensorflow,
    /// An onnxruntime-gpu release
    Onnxruntime,
    /// A JAX CUDA plugin release
    Jax,
    /// A TensorRT release
    Tensorrt,
    /// A Python or conda package: xgboost, cupy-cuda12x
    Package,
    /// An Azure virtual machine size
    Size,
    /// An Azure service: aci, container-apps, ml, batch, vm, aks
    Service,
    /// A kind of Azure storage
    Storage,
}

/// Explain a finding code, an error message or a log
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock explain CD0304
  cudock explain 209
  cudock explain 'no kernel image is available for execution on the device'
  cudock explain training.log
  docker logs trainer 2>&1 | cudock explain")]
pub(crate) struct ExplainArgs {
    /// A finding code, a CUDA error number or name, a message, or a file; by default or with -, standard input
    pub(crate) what: Vec<String>,

    /// Treat the argument as a message, even if a file has that name
    #[arg(long)]
    pub(crate) text: bool,

    /// Show every message found, not only the five most relevant
    #[arg(long)]
    pub(crate) all: bool,

    /// Show where the explanation comes from
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Diagnose the GPU stack of this machine or container
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock doctor
  cudock doctor --verbose
  docker run --rm --gpus all -v \"$(command -v cudock):/cudock\" IMAGE /cudock doctor
  cudock doctor --root /mnt/other-root --format json")]
pub(crate) struct DoctorArgs {
    /// Diagnose a directory tree instead of this machine
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,

    /// Show the evidence of each finding
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// List the GPU code in binaries, libraries, directories and wheels
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock inspect /usr/local/cuda/lib64/libcublas.so
  cudock inspect .venv/lib/python3.12/site-packages
  cudock inspect torch-2.15.0-cp312-cp312-manylinux_2_28_x86_64.whl
  cudock inspect --kernels build/app --format json")]
pub(crate) struct InspectArgs {
    /// Files, directories or wheels
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// List the kernels in the machine code
    #[arg(long)]
    pub(crate) kernels: bool,
}

/// Remove GPU code for GPUs that a program will not run on
///
/// The remaining code and all addresses do not change. Removed code becomes holes in the files; with --compact the files
/// themselves become smaller. See docs/slim.md.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock slim libonnxruntime_providers_cuda.so -o slim.so --for T4
  cudock slim .venv/lib/python3.12/site-packages -o slim-packages --for sm_80,H100
  cudock slim torch.whl -o slim/torch.whl --for Standard_NC4as_T4_v3 --compact
  cudock slim libs --for H200 --dry-run
  cudock slim /opt/app --in-place --for H200
  cudock slim registry.example/team/app:1.0 -o registry.example/team/app:1.0-t4 --for T4")]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct SlimArgs {
    /// A file, a directory, a wheel or an image
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// Write the result to this path, or an image to this destination, such as oci:DIR or a name in a registry
    #[arg(long, short, value_name = "OUT", required_unless_present_any = ["in_place", "dry_run"], conflicts_with = "in_place")]
    pub(crate) output: Option<PathBuf>,

    /// Keep code for these targets: GPU names, Azure sizes, or targets such as `sm_75`
    #[arg(long = "for", value_name = "TARGET", value_delimiter = ',', required = true)]
    pub(crate) targets: Vec<String>,

    /// Shrink the files themselves
    #[arg(long)]
    pub(crate) compact: bool,

    /// Compress the new layers of an image like this: gzip, zstd or none, with a level such as zstd:19
    #[arg(long, value_name = "FORMAT")]
    pub(crate) compression: Option<cudock_image::write::Compression>,

    /// Remove the CUDA libraries of an image that nothing in it links to or opens, too
    #[arg(long)]
    pub(crate) remove_unused: bool,

    /// Replace the input
    #[arg(long)]
    pub(crate) in_place: bool,

    /// Write nothing, and report what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_parsed_alone_is_what_it_is_among_all() {
        let parsed = |line: &str| {
            let args = || line.split(' ').map(OsString::from);
            let all = Cli::try_parse_from([OsString::from("cudock")].into_iter().chain(args())).ok();
            let alone = match line.split(' ').next() {
                Some("lint") => Cli::parse_verb(args(), Verb::Lint),
                Some("plan") => Cli::parse_verb(args(), |args| Verb::Plan(Box::new(args))),
                _ => Cli::parse_verb(args(), |args| Verb::Run(Box::new(args))),
            };
            (format!("{alone:?}"), format!("{all:?}"))
        };
        for line in [
            "lint a b --for T4",
            "lint -v a",
            "lint --verbose --format json --facts /tables a -q",
            "plan -v examples/digits --color never",
            "run -q --rm -v /a:/b image sh -c true --format",
        ] {
            let (alone, all) = parsed(line);
            assert_eq!(alone, all);
            assert!(alone.starts_with("Some("), "{line}: {alone}");
        }
        for line in ["lint --nope", "lint --help", "plan --format nope", "run --help"] {
            assert_eq!(parsed(line), ("None".to_owned(), "None".to_owned()), "{line}");
        }
    }

    #[test]
    fn verbs_reject_formats_they_do_not_support() {
        use FormatArg::{Csv, Github, Json, Sarif, Text, Yaml};
        for (format, plain, findings, doctor, plan, specification) in [
            (Text, true, true, true, true, true),
            (Json, true, true, true, true, true),
            (Csv, false, false, false, true, false),
            (Sarif, false, true, false, false, false),
            (Github, false, true, true, false, false),
            (Yaml, false, false, false, false, true),
        ] {
            assert_eq!(format.plain().is_ok(), plain, "{format:?}");
            assert_eq!(format.findings().is_ok(), findings, "{format:?}");
            assert_eq!(format.doctor().is_ok(), doctor, "{format:?}");
            assert_eq!(format.plan().is_ok(), plan, "{format:?}");
            assert_eq!(format.specification().is_ok(), specification, "{format:?}");
        }
    }
}
