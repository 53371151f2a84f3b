//! Short builders of what is judged.

use cudock_base::NamedArch;
use cudock_compat::evidence::{
    Artifact, ArtifactKind, Code, CodeFile, CompatNote, DriverCopy, Effect, Evidence, Missing, Pattern,
    Reach, Role, Runtime, SubjectKind, Unread,
};
use cudock_facts::version::{CudaVersion, PtxArch, PtxIsa, SmArch};
use cudock_host::frameworks::Support;
use cudock_host::host::LibraryKind;

fn machine_code(targets: &[&str]) -> Vec<SmArch> {
    targets.iter().map(|target| target.parse().unwrap()).collect()
}

fn ptx_code(targets: &[(&str, &str)]) -> Vec<(PtxArch, PtxIsa)> {
    targets.iter().map(|(target, isa)| (target.parse().unwrap(), isa.parse().unwrap())).collect()
}

/// An artifact in the making.
pub(crate) struct Part(pub(crate) Artifact);

pub(crate) fn artifact(name: &str, kind: ArtifactKind) -> Part {
    Part(Artifact {
        name: name.to_owned(),
        kind,
        path: format!("/opt/{name}"),
        support: Support::Cuda,
        runtime: None,
        links_driver: false,
        own_floor: None,
        code: Code::None,
        missing: Vec::new(),
        barred: None,
        build: None,
    })
}

/// A program without GPU code or runtime, until it is given them.
pub(crate) fn app() -> Part {
    artifact("app", ArtifactKind::Program)
}

/// A Python extension, likewise.
pub(crate) fn extension() -> Part {
    artifact("extension.so", ArtifactKind::Extension)
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
        let pattern = Pattern { sass: machine_code(sass), grouped: Vec::new(), ptx: ptx_code(ptx), modules };
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
            loose: false,
            toolkit: None,
            embeds: Vec::new(),
            needed: Vec::new(),
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

    /// The machine code of the last module lies in a group.
    pub(crate) fn grouped(mut self) -> Self {
        let pattern = self.last_file().patterns.last_mut().unwrap();
        pattern.grouped = std::mem::take(&mut pattern.sass);
        self
    }

    /// The last file's code is data of the program's own.
    pub(crate) fn loose(mut self) -> Self {
        self.last_file().loose = true;
        self
    }

    /// The system does not start it.
    pub(crate) fn barred(mut self) -> Self {
        self.0.barred = Some("the file has no execute permission".to_owned());
        self
    }

    /// A file of a library's name comes first and is none.
    pub(crate) fn broken(mut self, library: &str) -> Self {
        let (broken, needed_by) = (Some(format!("/opt/first/{library}")), self.0.path.clone());
        let library = library.to_owned();
        self.0.missing.push(Missing { library, needed_by, version: None, broken, effect: Effect::Fails });
        self
    }

    /// NVIDIA's libraries that are linked into the last file.
    pub(crate) fn embeds(mut self, libraries: &[&'static str]) -> Self {
        self.last_file().embeds = libraries.to_vec();
        self
    }

    /// A library that the last file cannot be loaded without.
    pub(crate) fn needs(mut self, library: &str) -> Self {
        self.last_file().needed.push(library.to_owned());
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
        self.0.runtime = Some(Runtime { major: version.major(), version: Some(version), path });
        self
    }

    /// It names libcuda among the libraries it needs.
    pub(crate) fn links_driver(mut self) -> Self {
        self.0.links_driver = true;
        self
    }

    pub(crate) fn missing(mut self, library: &str, effect: Effect) -> Self {
        let (library, needed_by) = (library.to_owned(), self.0.path.clone());
        self.0.missing.push(Missing { library, needed_by, version: None, broken: None, effect });
        self
    }

    /// A library that is there and lacks a symbol version.
    pub(crate) fn missing_versions(mut self, library: &str, version: &str) -> Self {
        let (library, needed_by) = (library.to_owned(), self.0.path.clone());
        let version = Some(version.to_owned());
        self.0.missing.push(Missing { library, needed_by, version, broken: None, effect: Effect::Fails });
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

/// What is judged.
pub(crate) struct Given(pub(crate) Evidence);

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
        self.0.artifacts.push(part.0);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.0.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn built_for(mut self, cpu: &str) -> Self {
        self.0.cpu = Some(NamedArch::new(cpu));
        self
    }

    pub(crate) fn partly_read(mut self) -> Self {
        let [what, at, why, fix] = ["a layer", "/image", "was not read", "pull it"].map(str::to_owned);
        self.0.unread.push(Unread { what, at, why, fix });
        self
    }

    /// A copy of libcuda in the image.
    pub(crate) fn libcuda(mut self, copy: DriverCopy, reach: Reach) -> Self {
        self.0.driver_copies.push(DriverCopy { reach, ..copy });
        self
    }
}

/// A copy of libcuda of no known version.
pub(crate) fn copy(kind: LibraryKind) -> DriverCopy {
    let (path, reach) = ("/image/libcuda.so.1".to_owned(), Reach::CompatDirectory);
    DriverCopy { path, kind, version: None, note: None, reach }
}

/// cuda-compat of a driver, without a note.
pub(crate) fn compat(driver: &str) -> DriverCopy {
    DriverCopy { version: Some(driver.parse().unwrap()), ..copy(LibraryKind::Compat) }
}

/// cuda-compat of a driver whose note lists these branches.
pub(crate) fn noted_compat(driver: &str, cuda: &str, branches: &[u16]) -> DriverCopy {
    let note = CompatNote { cuda: Some(cuda.parse().unwrap()), branches: branches.to_vec() };
    DriverCopy { note: Some(note), ..compat(driver) }
}
