//! The command line: every verb with its arguments.
//!
//! Nothing is decided here. The command, `cudock`, turns arguments into the requests of libraries,
//! which know nothing of the command line. Flags that override keys of `cudock.toml` are defined
//! next to those keys, in `cudock-project`.

mod containers;
mod deploy;
pub mod env;
mod image;
mod judge;
mod serving;
mod shell;
mod sweep;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use cudock_facts::formats::ServiceFormat;
use cudock_project::choice;

pub use self::containers::*;
pub use self::deploy::*;
pub use self::image::*;
pub use self::judge::*;
pub use self::serving::*;
pub use self::shell::*;
pub use self::sweep::*;

/// Checks, plans, runs and serves CUDA workloads in containers
///
/// Exit codes: 0 success or yes; 1 the answer is no; 2 invalid arguments or input; 3 system or network failure.
#[derive(Debug, Parser)]
#[command(name = "cudock", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,

    #[command(subcommand)]
    pub verb: Verb,
}

/// Arguments that every verb takes.
#[derive(Debug, Args)]
pub struct GlobalArgs {
    /// Use the fact tables in this directory over the embedded ones
    #[arg(long, global = true, value_name = "DIR", env = env::FACTS)]
    pub facts: Option<PathBuf>,

    /// Set the format of the report
    #[arg(long, global = true, default_value = "text", value_parser = choice(FORMATS))]
    pub format: FormatArg,

    /// Print no progress and no notes; warnings and errors remain
    #[arg(long, short, global = true)]
    pub quiet: bool,

    /// Print more: the whole report where there is a longer one, and every network request
    #[arg(long, global = true)]
    pub verbose: bool,

    /// Color the output [default: on a terminal, unless `NO_COLOR` is set]
    #[arg(long, global = true, value_enum, value_name = "WHEN", hide_default_value = true, default_value_t)]
    pub color: ColorArg,
}

/// When to color the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorArg {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatArg {
    Text,
    Json,
    Csv,
    Service(ServiceFormat),
    Yaml,
}

/// The formats of reports.
const FORMATS: &[(&str, &str, FormatArg)] = &[
    ("text", "Text for humans", FormatArg::Text),
    ("json", "One JSON object", FormatArg::Json),
    ("csv", "CSV with the placements of `plan` or the trials of `sweep`", FormatArg::Csv),
    (
        "sarif",
        "For code scanners: the findings of `check`, `lint` and `migrate` as SARIF 2.1.0",
        FormatArg::Service(ServiceFormat::Sarif),
    ),
    (
        "github",
        "For GitHub Actions: the findings of `check`, `doctor`, `lint` and `migrate` as workflow annotations",
        FormatArg::Service(ServiceFormat::Github),
    ),
    (
        "gitlab",
        "For GitLab: the findings of `check`, `lint` and `migrate` as a Code Quality report",
        FormatArg::Service(ServiceFormat::Gitlab),
    ),
    // The default of `cdi generate`.
    ("yaml", "", FormatArg::Yaml),
];

#[derive(Debug, Subcommand)]
#[command(defer = true)]
#[allow(clippy::doc_markdown, reason = "shown as help")]
pub enum Verb {
    /// Check whether an image, a program or an environment will use a given GPU
    ///
    /// Reads the files and runs nothing: prints the verdict, the expected error, the file that causes it, and the fix.
    /// SUBJECT is an image (in a registry or a daemon, an OCI layout, a docker archive), a program, a library, a wheel, a
    /// directory, or a dependency file such as a Dockerfile or requirements.txt. See docs/check.md.
    Check(CheckArgs),

    /// Find problems in Dockerfiles of GPU images, and fix them
    ///
    /// Judges every stage and command by rules for CUDA images: tags, flavors, wheels, drivers, size. With --for, also whether the
    /// image will run on that GPU. In directories, it lints Dockerfiles and Containerfiles, and those that compose and bake files
    /// name, except what .gitignore excludes. `[lint]` in cudock.toml selects rules. See docs/lint.md and docs/lints.md.
    Lint(LintArgs),

    /// Lint Dockerfiles in an editor, as a language server on standard input and output
    ///
    /// Editors start it themselves; docs/lint.md has the settings for some. It finds and fixes the same as `cudock lint`.
    Lsp(LspArgs),

    /// Find the best Azure service, size and region for a workload, with costs and reasons
    ///
    /// PATH is a cudock.toml or its directory; flags override its keys and can replace it. Every service, size, region and
    /// priority in the tables is checked against the workload: what fits is priced part by part and ranked by cost, and what
    /// does not is rejected with a reason. Values that are not given are assumed and printed. No request is sent to Azure;
    /// see docs/plan.md for the model and its limits.
    ///
    /// Exit codes: 0 something fits; 1 nothing fits; 2 invalid arguments or file.
    Plan(Box<PlanArgs>),

    /// Run a hyperparameter sweep, or resume it
    ///
    /// Runs the command of `[sweep]` in cudock.toml with different parameters, and stops trials that do badly. Re-run the same
    /// command to resume a sweep that was interrupted, killed or paused. See docs/sweep.md.
    Sweep(Box<SweepArgs>),

    /// Find retired Azure GPU sizes and services in files, with replacements and prices
    ///
    /// Files are recognized by content: shell scripts and `az` command lines, container groups, ARM, Bicep and Terraform
    /// templates, Machine Learning and Batch files and programs, `SkyPilot` tasks, notebooks and notes. Files are never modified.
    /// With -o, a `HyperDrive` program becomes cudock.toml and a sweep job, a container group an app of Container Apps, and a
    /// program for azure-batch 14 one for 15. The exit code is 1 if something is retired, and 0 if not. See docs/migrate.md.
    Migrate(MigrateArgs),

    /// Show how old the prices of Azure's sizes are, or refresh them
    ///
    /// Newer prices come from Azure's public price list, which needs no login, and go into an overlay of the embedded table:
    /// in --facts DIR, or else in cudock/facts in your configuration directory. See docs/prices.md.
    Prices(PricesArgs),

    /// Look up a GPU, driver, CUDA version, image, framework build or Azure size
    Facts(FactsArgs),

    /// Explain a finding code, an error message or a log
    Explain(ExplainArgs),

    /// Diagnose the GPU stack of this machine or container
    Doctor(DoctorArgs),

    /// List the GPU code in binaries, libraries, directories and wheels
    Inspect(InspectArgs),

    /// Remove GPU code for GPUs that a program will not run on
    ///
    /// The remaining code and all addresses do not change. Removed code becomes holes in the files; with --compact the files
    /// themselves become smaller. See docs/slim.md.
    Slim(SlimArgs),

    /// Write cudock.lock: every wheel and Debian package of the image with its hash
    ///
    /// Versions of Python packages are chosen by uv. Indexes and mirrors are those of pip, uv and apt. See docs/lock.md.
    Lock(LockArgs),

    /// Sign an image with a key, as cosign does
    ///
    /// The signature is attached to the image where it is: in a registry or an OCI layout. See docs/trust.md.
    Sign(SignArgs),

    /// Build the image of a project, without a daemon
    ///
    /// The image has what cudock.lock lists and the project needs to run, and GPU code for its targets only. The same lock
    /// gives the same digest. Exit code 1: the image would not run on a target, and was not written. See docs/build.md.
    Build(BuildArgs),

    /// Serve a model over HTTP and gRPC, in batches that keep the device busy
    ///
    /// PATH is a model file, a project (a directory with a cudock.toml), or a directory of models: NAME.onnx,
    /// NAME/model.onnx or NAME/VERSION/model.onnx. Models are ONNX files, or run in Python: see docs/python.md. Supports `POST /predict` and the Open Inference Protocol v2 over REST and
    /// gRPC on one port, and shows a page with live figures at `/`. See docs/serve.md.
    Serve(Box<ServeArgs>),

    /// Batch requests to any HTTP model server, balance and hold them
    ///
    /// Single POST requests to /predict are collected into lists, sent as one request, and the answer is split again; all
    /// other requests and streamed answers are passed on as they are. Reads `[gateway]` of the cudock.toml in this directory.
    /// See docs/gateway.md.
    Gateway(Box<GatewayArgs>),

    /// List, load and unload the models of a running `cudock serve`
    Models(ModelsArgs),

    /// Measure a model server, or a model without one; find the fastest settings
    ///
    /// URL is a server with `POST /predict` or the Open Inference Protocol v2. Requests are generated from the server's model
    /// metadata. With --rate, latency counts from the time a request was scheduled, so a server that stalls cannot hide it.
    /// With --model, the engine runs in this process: the upper limit for any server. With --tune, servers are started with
    /// different settings to find the fastest. See docs/bench.md.
    Bench(Box<BenchArgs>),

    /// Find or install ONNX Runtime, the engine of `serve`
    ///
    /// Wheels come from the indexes that pip is configured for, and are pinned by hash.
    Runtime(RuntimeArgs),

    /// Run a container on this machine, with GPU access
    ///
    /// Needs no daemon and no NVIDIA toolkit: the driver's files and device nodes are found when the container starts. IMAGE is
    /// a name in a registry or a daemon, or the path of an OCI layout or archive, which begins with . or /. The exit code is the program's; 126 means that it could
    /// not be executed, 127 that it was not found, 2 and 3 that no container was started. See docs/run.md.
    Run(Box<RunArgs>),

    /// Generate a CDI specification of the GPUs, or find specifications that are out of date
    ///
    /// Docker, podman and containerd read such files and need no other toolkit: `--device nvidia.com/gpu=all`. A file describes
    /// one driver: regenerate it after an update.
    Cdi(CdiArgs),

    /// The hook that CDI specifications call.
    #[command(hide = true)]
    CdiHook(CdiHookArgs),

    /// List deployments on Azure and containers on this machine
    Ps(PsArgs),

    /// Print the log of a container or deployment
    Logs(LogsArgs),

    /// Run another process in a container
    Exec(ExecArgs),

    /// Stop containers, and kill them if they do not stop
    Stop(StopArgs),

    /// Send a signal to containers
    Kill(KillArgs),

    /// Start containers that have exited
    ///
    /// Files are as the containers left them. Values of variables passed with -e are not stored: pass them again.
    Start(StartArgs),

    /// Stop containers and start them again
    Restart(RestartArgs),

    /// Remove containers and their files
    Rm(RmArgs),

    /// Copy files between a container and this machine
    ///
    /// Links in the container are resolved inside it, and copied as links. Devices, pipes and sockets are skipped.
    Cp(CpArgs),

    /// Show the CPU, memory and GPU usage of containers
    ///
    /// GPU columns show the container's own processes, as reported by NVML.
    Stats(StatsArgs),

    /// List the processes of a container
    Top(TopArgs),

    /// List downloaded images
    Images(ImagesArgs),

    /// Download and unpack images, so that containers start immediately
    Pull(PullArgs),

    /// Push an image to a registry
    Push(PushArgs),

    /// Copy an image between registries, daemons, layouts and archives
    ///
    /// All platforms of an image are copied, with their signatures, and no byte changes unless --compression asks for it.
    Copy(CopyArgs),

    /// List, create and remove named volumes
    Volume(VolumeArgs),

    /// Remove unpacked images that no container uses
    ///
    /// Unpacked layers are kept for the next container. This removes those that no container on this machine uses, running or
    /// not; they are fetched and unpacked again when needed.
    Prune(PruneArgs),

    /// Wait until containers have exited, and print their exit codes
    Wait(WaitArgs),

    /// Print everything about containers, as JSON
    InspectContainer(InspectContainerArgs),

    /// Run a group of containers or a project here, or deploy it to Azure with --on
    ///
    /// The containers of a group share a network, a localhost and volumes.
    /// The file has the format of `az container create --file`. Without -f, runs the group.yaml of DIR, or serves the model of
    /// its cudock.toml, as `cudock serve` does. Paths in the file are relative to its directory. In the foreground, Ctrl-C stops
    /// the group, and a second one kills it. Exit code 1 means that the group failed or did not become ready. See
    /// docs/groups.md, and docs/deploy.md for Azure.
    Up(Box<UpArgs>),

    /// Stop and remove a group, or delete a deployment on Azure
    Down(DownArgs),

    /// List groups and their containers
    Groups(GroupsArgs),

    /// Write a deployment as files for Bicep, ARM, Terraform, az or Machine Learning
    ///
    /// The files create what `cudock up --on` would create. Secrets become parameters, and `down.sh` deletes everything. Nothing
    /// is sent. See docs/azure.md.
    Export(Box<ExportArgs>),

    /// Delete what was left behind in Azure
    ///
    /// Deletes deployments of the journal whose command died or that have ended, and resource groups with the tag of cudock
    /// that the journal has lost or that are expired. Running deployments stay. What another state directory of yours made is
    /// listed, and deleted only if it is expired or named. See docs/deploy.md.
    Gc(GcArgs),

    /// Wait for a deployment whose command died
    ///
    /// Goes on where `cudock up` was interrupted: sends the requests that are missing and waits. The output of a job is
    /// printed, it is deleted, and its exit code is that of the command.
    Resume(ResumeArgs),

    /// Show what deployments cost: now, this month, and until they expire
    ///
    /// Billed seconds come from the clocks of the services. Taxes and discounts are not known.
    Cost(CostArgs),

    /// Check that a deployment sees the GPUs that are paid for, or that a key signed an image
    ///
    /// Compares the devices that its log lists as `nvidia-smi -L` does with those of its size. Exit code 1 means that some
    /// are missing or different, or that the log lists none.
    Verify(VerifyArgs),

    /// Start a project: write its Dockerfile, cudock.toml and .dockerignore, or copy an example
    ///
    /// Looks at a directory and writes files whose versions run on the target: a CUDA program built by CMake or make, a
    /// program with PyTorch, TensorFlow, JAX or other CUDA packages, or an ONNX model. See docs/init.md.
    Init(InitArgs),

    /// Print the script that completes cudock's verbs and flags in a shell
    Completion(CompletionArgs),

    /// Print a manual page
    Man(ManArgs),

    /// Print the JSON Schema of cudock.toml or of a JSON report
    ///
    /// Editors check and complete cudock.toml with its schema. See docs/schema.md.
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

    /// A process in a container, on behalf of the one that joins it.
    #[command(hide = true)]
    Enter(JoinArgs),

    /// What deletes a deployment from the inside.
    #[command(hide = true)]
    Watchdog(WatchdogArgs),

    /// Published ports of a container.
    #[command(hide = true)]
    Forward { handover: String },

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
    SweepWorker { lock: PathBuf },

    /// The NVML query of `doctor`, in its own process.
    #[command(hide = true)]
    Nvml {
        library: Option<PathBuf>,
        /// List the processes on the GPUs instead of the GPUs.
        #[arg(long)]
        processes: bool,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_verb_is_described_before_its_arguments_are() {
        let command = Cli::command();
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            assert!(verb.get_about().is_some(), "{}", verb.get_name());
            assert_eq!(verb.get_arguments().count(), 0, "{}: its arguments are deferred", verb.get_name());
        }
    }

    #[test]
    fn no_arguments_contradict_each_other() {
        Cli::command().debug_assert();
    }
}
