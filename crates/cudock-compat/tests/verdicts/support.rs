//! Words in which the cases are written: what is given, where it runs, and what is expected.

use std::sync::OnceLock;

use cudock_compat::evidence::{
    Code, CodeFile, CompatNote, CopyKind, DriverCopy, Effect, Evidence, Missing, Pattern, Reach, Role, Runtime,
    SubjectKind, Unit, UnitKind,
};
use cudock_compat::target::HostLibcuda;
use cudock_compat::{Machine, StartPath, Target, Verdict, judge};
use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity};
use cudock_facts::lookup::TorchWheel;
use cudock_facts::version::{CudaVersion, PtxArch, PtxIsa, SmArch};
use cudock_host::frameworks::{Alarm, Build, Support, Without};
use cudock_host::host::LibraryKind;

/// One case: its name is the promise, the rule is where in the rules it was read.
macro_rules! case {
    ($name:ident, $rule:literal, $given:expr, $target:expr, $expected:expr) => {
        #[test]
        fn $name() {
            crate::support::check($rule, $given, &$target, &$expected);
        }
    };
}
pub(crate) use case;

pub(crate) fn facts() -> &'static Facts {
    static FACTS: OnceLock<Facts> = OnceLock::new();
    FACTS.get_or_init(Facts::embedded)
}

fn machine_code(targets: &[&str]) -> Vec<SmArch> {
    targets.iter().map(|target| target.parse().unwrap()).collect()
}

fn ptx_code(targets: &[(&str, &str)]) -> Vec<(PtxArch, PtxIsa)> {
    targets.iter().map(|(target, isa)| (target.parse().unwrap(), isa.parse().unwrap())).collect()
}

/// A unit in the making.
pub(crate) struct Part(Unit);

fn unit(name: &str, kind: UnitKind) -> Part {
    Part(Unit {
        name: name.to_owned(),
        kind,
        path: format!("/opt/{name}"),
        support: Support::Cuda,
        runtime: None,
        links_driver: false,
        own_floor: None,
        code: Code::None,
        missing: Vec::new(),
        build: None,
    })
}

/// A program without GPU code or runtime, until it is given them.
pub(crate) fn app() -> Part {
    unit("app", UnitKind::Program)
}

/// A Python extension, likewise.
pub(crate) fn extension() -> Part {
    unit("extension.so", UnitKind::Extension)
}

/// A program of one module with this machine code.
pub(crate) fn sass(targets: &[&str]) -> Part {
    app().module(targets, &[], 1)
}

/// A program of one module with this PTX.
pub(crate) fn ptx(targets: &[(&str, &str)]) -> Part {
    app().module(&[], targets, 1)
}

impl Part {
    /// Modules alike, in the file that was begun last.
    pub(crate) fn module(mut self, sass: &[&str], ptx: &[(&str, &str)], modules: u64) -> Self {
        if matches!(self.0.code, Code::None) {
            let path = self.0.path.clone();
            self = self.file(&path, Role::Program);
        }
        let pattern = Pattern { sass: machine_code(sass), ptx: ptx_code(ptx), modules };
        self.last_file().patterns.push(pattern);
        self
    }

    /// A further file with GPU code.
    pub(crate) fn file(mut self, path: &str, role: Role) -> Self {
        let file = CodeFile {
            path: path.to_owned(),
            role,
            patterns: Vec::new(),
            device_linked: false,
            toolkit: None,
        };
        match &mut self.0.code {
            Code::Files(files) => files.push(file),
            code => *code = Code::Files(vec![file]),
        }
        self
    }

    fn last_file(&mut self) -> &mut CodeFile {
        let Code::Files(files) = &mut self.0.code else { panic!("no file was begun") };
        files.last_mut().unwrap()
    }

    /// PTX beside the machine code of the last module.
    pub(crate) fn and_ptx(mut self, targets: &[(&str, &str)]) -> Self {
        self.last_file().patterns.last_mut().unwrap().ptx.extend(ptx_code(targets));
        self
    }

    pub(crate) fn device_linked(mut self) -> Self {
        self.last_file().device_linked = true;
        self
    }

    /// The toolkit that wrote the last file's code.
    pub(crate) fn toolkit(mut self, cuda: &str) -> Self {
        self.last_file().toolkit = Some(cuda.parse().unwrap());
        self
    }

    /// The CUDA runtime it brings.
    pub(crate) fn runtime(mut self, cuda: &str) -> Self {
        let version: CudaVersion = cuda.parse().unwrap();
        let path = format!("/opt/lib/libcudart.so.{}", version.major());
        self.0.runtime = Some(Runtime { major: version.major(), version: Some(version), linked_in: false, path });
        self
    }

    /// It names libcuda among the libraries it needs.
    pub(crate) fn links_driver(mut self) -> Self {
        self.0.links_driver = true;
        self
    }

    pub(crate) fn missing(mut self, library: &str, effect: Effect) -> Self {
        let (library, needed_by) = (library.to_owned(), self.0.path.clone());
        self.0.missing.push(Missing { library, needed_by, version: None, effect });
        self
    }

    /// A library that is there and lacks a symbol version.
    pub(crate) fn lacking(mut self, library: &str, version: &str) -> Self {
        let (library, needed_by) = (library.to_owned(), self.0.path.clone());
        let version = Some(version.to_owned());
        self.0.missing.push(Missing { library, needed_by, version, effect: Effect::Fails });
        self
    }

    pub(crate) fn support(mut self, support: Support) -> Self {
        self.0.support = support;
        self
    }

    pub(crate) fn code(mut self, code: Code) -> Self {
        self.0.code = code;
        self
    }
}

fn framework(
    name: &str,
    version: &str,
    major: u8,
    cuda: Option<CudaVersion>,
    code: (Option<Vec<SmArch>>, Option<Vec<PtxArch>>, Option<PtxIsa>),
) -> Part {
    let (sass, ptx, known_isa) = code;
    let by_toolkit = cuda.and_then(|cuda| facts().toolkits().toolkit(cuda)).map(|toolkit| toolkit.ptx_isa);
    let isa = known_isa.or(by_toolkit);
    let mut part = unit(&format!("{name} {version}"), UnitKind::Framework);
    part.0.runtime = Some(Runtime { major, version: cuda, linked_in: false, path: part.0.path.clone() });
    part.0.code = match &sass {
        Some(sass) => Code::Table { sass: sass.clone(), ptx: ptx.clone(), isa },
        None => Code::Unknown("its GPU code is not in the tables".to_owned()),
    };
    part.0.build = Some(Build {
        name: name.to_owned(),
        version: version.to_owned(),
        label: format!("CUDA {major} build"),
        path: None,
        support: Support::Cuda,
        cuda_major: Some(major),
        cuda,
        min_driver: None,
        sass,
        ptx,
        ptx_isa: isa,
        needs: Vec::new(),
        without: Without::ImportFails,
    });
    part
}

/// A torch wheel of the tables, by its CUDA tag.
pub(crate) fn torch(version: &str, tag: &str) -> Part {
    let row = facts().frameworks().torch_build(&version.parse().unwrap(), TorchWheel::Tag(tag)).unwrap();
    let cuda = CudaVersion::from_tag(tag).unwrap();
    framework("torch", version, cuda.major(), Some(cuda), (row.sass.clone(), row.ptx.clone(), None))
}

/// torch as its ARM wheel on PyPI is.
pub(crate) fn torch_for_arm(version: &str) -> Part {
    let row = facts().frameworks().torch(&version.parse().unwrap()).unwrap();
    let cuda = row.aarch64_cuda.unwrap();
    framework("torch", version, cuda.major(), Some(cuda), (row.aarch64_sass.clone(), Some(Vec::new()), None))
}

/// torch whose files were read, not looked up.
pub(crate) fn torch_read(version: &str, cuda: &str) -> Part {
    let cuda: CudaVersion = cuda.parse().unwrap();
    framework("torch", version, cuda.major(), Some(cuda), (Some(Vec::new()), None, None))
        .code(Code::None)
        .file("/opt/torch/lib/libtorch_cuda.so", Role::Framework)
}

pub(crate) fn tensorflow(version: &str) -> Part {
    let row = facts().frameworks().tensorflow(&version.parse().unwrap()).unwrap();
    let cuda = row.cuda.unwrap();
    framework("tensorflow", version, cuda.major(), Some(cuda), (row.sass.clone(), row.ptx.clone(), None))
}

pub(crate) fn onnxruntime(version: &str) -> Part {
    let row = facts().frameworks().onnxruntime_gpu(&version.parse().unwrap()).unwrap();
    let code = (Some(row.sass.clone()), Some(row.ptx.clone()), row.ptx_isa);
    framework("onnxruntime-gpu", version, row.cuda_major, row.cuda, code)
}

/// JAX, with the driver floor its plugin's row has.
pub(crate) fn jax(plugin: &str, version: &str) -> Part {
    let row = facts().frameworks().jax_plugin(plugin, &version.parse().unwrap()).unwrap();
    let cuda = row.built_with.map(cudock_facts::version::CudaRelease::version);
    let mut part = framework("jax", version, row.cuda_major, cuda, (row.sass.clone(), row.ptx.clone(), None));
    part.0.own_floor = Some(row.min_driver);
    part
}

/// A framework that was built for the CPU.
pub(crate) fn cpu_build(name: &str, alarm: Alarm) -> Part {
    let (reason, fix) = ("not compiled with CUDA enabled".to_owned(), "install the CUDA build".to_owned());
    unit(name, UnitKind::Framework).support(Support::Cpu { reason, alarm, fix })
}

pub(crate) fn rocm_build(name: &str) -> Part {
    unit(name, UnitKind::Framework).support(Support::OtherVendor { fix: "install the CUDA build".to_owned() })
}

/// What is judged.
pub(crate) struct Given(Evidence);

/// An image with nothing in it.
pub(crate) fn image() -> Given {
    Given(Evidence { subject: "image".to_owned(), kind: SubjectKind::Image, ..Evidence::default() })
}

impl From<Part> for Given {
    fn from(part: Part) -> Self {
        Given(Evidence { subject: "program".to_owned(), kind: SubjectKind::Program, ..Evidence::default() })
            .with(part)
    }
}

impl Part {
    /// As the one thing in an image.
    pub(crate) fn in_image(self) -> Given {
        image().with(self)
    }

    /// Started with a variable.
    pub(crate) fn env(self, name: &str, value: &str) -> Given {
        Given::from(self).env(name, value)
    }
}

impl Given {
    pub(crate) fn with(mut self, part: Part) -> Self {
        self.0.units.push(part.0);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.0.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn built_for(mut self, cpu: &str) -> Self {
        self.0.cpu = Some(cpu.to_owned());
        self
    }

    pub(crate) fn partly_read(mut self) -> Self {
        self.0.partial = Some("a layer was not read".to_owned());
        self
    }

    /// A copy of libcuda in the image.
    pub(crate) fn libcuda(mut self, kind: CopyKind, reach: Reach) -> Self {
        self.0.driver_copies.push(DriverCopy { path: "/image/libcuda.so.1".to_owned(), kind, reach });
        self
    }
}

/// cuda-compat of a driver, without a note.
pub(crate) fn compat(driver: &str) -> CopyKind {
    CopyKind::Compat { driver: Some(driver.parse().unwrap()), note: None }
}

/// cuda-compat of a driver whose note lists these branches.
pub(crate) fn noted_compat(driver: &str, cuda: &str, branches: &[u16]) -> CopyKind {
    let note = CompatNote { cuda: Some(cuda.parse().unwrap()), branches: branches.to_vec() };
    CopyKind::Compat { driver: Some(driver.parse().unwrap()), note: Some(note) }
}

pub(crate) fn gpu(name: &str, driver: &str) -> Target {
    Target::of_gpu(facts(), name, Some(driver.parse().unwrap())).unwrap()
}

/// What a target may have beside its card and driver.
pub(crate) trait Around {
    fn cdi(self) -> Self;
    fn wsl(self) -> Self;
    fn cards(self, count: u32) -> Self;
    fn processor(self, cpu: &str) -> Self;
    fn brand(self, brand: &str) -> Self;
    fn capability(self, capability: &str) -> Self;
    fn machine(self, machine: Machine) -> Self;
}

impl Around for Target {
    fn cdi(mut self) -> Self {
        self.traits.start = StartPath::Cdi;
        self
    }

    fn wsl(mut self) -> Self {
        self.traits.wsl = true;
        self
    }

    fn cards(mut self, count: u32) -> Self {
        self.traits.gpu_count = Some(count);
        self
    }

    fn processor(mut self, cpu: &str) -> Self {
        self.traits.cpu = Some(cpu.to_owned());
        self
    }

    fn brand(mut self, brand: &str) -> Self {
        self.traits.brand = Some(brand.to_owned());
        self
    }

    fn capability(mut self, capability: &str) -> Self {
        self.capability = Some(capability.parse().unwrap());
        self
    }

    fn machine(mut self, machine: Machine) -> Self {
        self.traits.machine = Some(machine);
        self
    }
}

/// A machine with nothing against it.
pub(crate) fn healthy() -> Machine {
    Machine { libcuda: Some(host_libcuda(LibraryKind::Driver)), has_jit: true, ..Machine::default() }
}

fn host_libcuda(kind: LibraryKind) -> HostLibcuda {
    HostLibcuda { path: "/host/libcuda.so.1".to_owned(), kind, version: None, by_library_path: false }
}

/// A machine where the loader comes to this libcuda first.
pub(crate) fn finding_first(kind: LibraryKind, version: Option<&str>) -> Machine {
    let version = version.map(|version| version.parse().unwrap());
    let by_library_path = true;
    Machine { libcuda: Some(HostLibcuda { version, by_library_path, ..host_libcuda(kind) }), ..healthy() }
}

/// A machine that keeps every program from the card, with the doctor's code for it.
pub(crate) fn blocked(error: Option<u16>, code: &'static str) -> Machine {
    let finding = Finding {
        code,
        severity: Severity::Error,
        message: "the doctor's words".to_owned(),
        evidence: Vec::new(),
        fix: String::new(),
    };
    Machine { blocked: Some((error, finding)), ..healthy() }
}

enum Failure {
    /// The rules do not say.
    Any,
    None,
    Cuda(u16),
    /// Of the loader, the kernel or the container tools.
    Named(&'static str),
}

/// What the rules promise; what they leave open is not looked at.
pub(crate) struct Expected {
    verdict: Option<Verdict>,
    failure: Failure,
    findings: Vec<&'static str>,
    absent: Vec<&'static str>,
    rules: Vec<&'static str>,
    printed: Vec<&'static str>,
}

fn expected(verdict: Option<Verdict>, failure: Failure) -> Expected {
    let (findings, absent) = (Vec::new(), Vec::new());
    Expected { verdict, failure, findings, absent, rules: Vec::new(), printed: Vec::new() }
}

pub(crate) fn works() -> Expected {
    expected(Some(Verdict::Works), Failure::None)
}

/// Runs after the driver compiled its PTX.
pub(crate) fn jit() -> Expected {
    expected(Some(Verdict::Jit), Failure::None)
}

pub(crate) fn unknown() -> Expected {
    expected(Some(Verdict::Unknown), Failure::None)
}

/// Starts and uses the CPU.
pub(crate) fn cpu() -> Expected {
    expected(Some(Verdict::Cpu), Failure::None)
}

/// Fails with an error of CUDA.
pub(crate) fn fails(error: u16) -> Expected {
    expected(Some(Verdict::Fails), Failure::Cuda(error))
}

/// Fails with an error of something else.
pub(crate) fn fails_by(name: &'static str) -> Expected {
    expected(Some(Verdict::Fails), Failure::Named(name))
}

/// Fails, with what is not fixed.
pub(crate) fn fails_somehow() -> Expected {
    expected(Some(Verdict::Fails), Failure::Any)
}

/// CUDA answers with this error; whether the program ends or goes on with the CPU is its own affair.
pub(crate) fn answers(error: u16) -> Expected {
    expected(None, Failure::Cuda(error))
}

/// Something is said; what the program does is not fixed.
pub(crate) fn says(finding: &'static str) -> Expected {
    expected(None, Failure::Any).finding(finding)
}

/// What the container tools say where requirements do not hold.
pub(crate) fn refused() -> Expected {
    fails_by("nvidia-container-cli: requirement error")
}

impl Expected {
    pub(crate) fn finding(mut self, code: &'static str) -> Self {
        self.findings.push(code);
        self
    }

    pub(crate) fn no_finding(mut self, code: &'static str) -> Self {
        self.absent.push(code);
        self
    }

    /// The rule is among those applied.
    pub(crate) fn by(mut self, rule: &'static str) -> Self {
        self.rules.push(rule);
        self
    }

    /// The error's name or message contains this.
    pub(crate) fn prints(mut self, part: &'static str) -> Self {
        self.printed.push(part);
        self
    }
}

/// Judges, and holds the judgement to what is expected.
pub(crate) fn check(rule: &str, given: impl Into<Given>, target: &Target, expected: &Expected) {
    let Given(evidence) = given.into();
    let judgement = judge(&evidence, target, facts());
    let told = format!("rule {rule}, on {}: {judgement:#?}", target.words());
    if let Some(verdict) = expected.verdict {
        assert_eq!(judgement.verdict, verdict, "{told}");
    }
    let error = judgement.error.as_ref();
    match expected.failure {
        Failure::Any => {}
        Failure::None => assert_eq!(error, None, "{told}"),
        Failure::Cuda(code) => assert_eq!(error.and_then(|error| error.code), Some(code), "{told}"),
        Failure::Named(name) => {
            assert_eq!(error.map(|error| (error.code, error.name.as_str())), Some((None, name)), "{told}");
        }
    }
    for code in &expected.findings {
        assert!(judgement.findings.iter().any(|finding| finding.code == *code), "no finding {code}; {told}");
    }
    for code in &expected.absent {
        assert!(judgement.findings.iter().all(|finding| finding.code != *code), "finding {code}; {told}");
    }
    for id in &expected.rules {
        assert!(judgement.rules.iter().any(|applied| applied.rule == *id), "{id} not applied; {told}");
    }
    for part in &expected.printed {
        let printed = error.map(|error| format!("{}: {}", error.name, error.message)).unwrap_or_default();
        assert!(printed.contains(part), "`{part}` is not printed; {told}");
    }
}
