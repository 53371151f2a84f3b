//! Determines the architectures that CUDA programs are compiled for: options of nvcc, variables of `CMake` and `PyTorch`.

use cudock_base::Span;
use cudock_facts::version::{Capability, PtxArch, SmArch};

/// A program or an extension that is compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// Its file, or the command that builds it.
    pub name: String,
    /// Its path in the container, if known.
    pub output: Option<String>,
    /// Whether it is an extension of a framework, not a program.
    pub is_extension: bool,
    pub targets: Targets,
    /// The image whose toolkit compiles it.
    pub image: Option<String>,
    /// The file that names it, if that is not the file that was read.
    pub file: Option<String>,
    pub span: Span,
}

/// The architectures that a CUDA program is compiled for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Targets {
    /// The compiler's default.
    Default,
    /// All architectures of the toolkit, or all major ones.
    All,
    Listed {
        /// Machine code.
        sass: Vec<SmArch>,
        ptx: Vec<PtxArch>,
    },
    Unknown(String),
}

impl Targets {
    /// Parses `TORCH_CUDA_ARCH_LIST`: `7.0;8.0+PTX`, `8.0 9.0a`.
    pub fn of_torch_list(list: &str) -> Self {
        listed(list.split([';', ' ', ',']), |name| {
            let with_ptx = name.strip_suffix("+PTX");
            let number = with_ptx.unwrap_or(name).split_once('.');
            let target = number.and_then(|(major, minor)| numbered(&format!("{major}{minor}")));
            let (real, virtual_arch) = target.ok_or_else(|| unknown(name))?;
            Ok((Some(real), with_ptx.map(|_| virtual_arch)))
        })
    }

    /// Whether there is machine code or PTX for a GPU; `None` if that is unknown.
    pub fn covers(&self, card: Capability) -> Option<bool> {
        match self {
            Self::Listed { sass, ptx } => Some(
                sass.iter().any(|arch| arch.runs_on(card)) || ptx.iter().any(|arch| arch.compiles_for(card)),
            ),
            Self::Default | Self::All | Self::Unknown(_) => None,
        }
    }

    /// Adds the targets of another option.
    pub(super) fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Unknown(_), _) | (_, Self::Default) => {}
            (Self::Listed { sass, ptx }, Self::Listed { sass: more_sass, ptx: more_ptx }) => {
                sass.extend(more_sass.into_iter().filter(|new| !sass.contains(new)).collect::<Vec<_>>());
                ptx.extend(more_ptx.into_iter().filter(|new| !ptx.contains(new)).collect::<Vec<_>>());
            }
            (_, other) => *self = other,
        }
    }
}

fn unknown(value: &str) -> Targets {
    Targets::Unknown(format!("unknown architectures `{}`", super::excerpt(value)))
}

/// Parses nvcc's arguments.
pub(super) fn of_nvcc<'a>(args: impl Iterator<Item = &'a str>) -> Targets {
    let mut targets = Targets::Default;
    let (mut virtual_arch, mut real) = (None::<String>, Vec::<String>::new());
    let mut args = args.peekable();
    while let Some(arg) = args.next() {
        let (name, inline) =
            arg.split_once('=').map_or((arg, None), |(name, value)| (name, Some(value.to_owned())));
        let mut value = || inline.clone().or_else(|| args.next().map(str::to_owned)).unwrap_or_default();
        match name {
            "-gencode" | "--generate-code" => targets.add(gencode(&value())),
            "-arch" | "--gpu-architecture" => virtual_arch = Some(value()),
            "-code" | "--gpu-code" => real.push(value()),
            _ => {}
        }
    }
    match virtual_arch {
        Some(arch) if real.is_empty() => targets.add(shorthand(&arch)),
        Some(_) => targets.add(codes(real.iter().flat_map(|codes| codes.split(',')))),
        None => {}
    }
    targets
}

/// `-arch=sm_80` is machine code and PTX; `-arch=compute_80` PTX alone.
fn shorthand(arch: &str) -> Targets {
    let arch = clean(arch);
    if let "all" | "all-major" = arch {
        return Targets::All;
    }
    match target(arch) {
        Ok((sass, ptx)) => {
            let ptx = ptx.or_else(|| arch.replacen("sm_", "compute_", 1).parse().ok());
            Targets::Listed { sass: sass.into_iter().collect(), ptx: ptx.into_iter().collect() }
        }
        Err(unknown) => unknown,
    }
}

/// `arch=compute_80,code=[sm_80,compute_80]`
fn gencode(value: &str) -> Targets {
    let Some((_, code)) = value.split_once("code=") else {
        return unknown(value);
    };
    codes(code.split(',').take_while(|code| !code.starts_with("arch=")))
}

fn codes<'a>(codes: impl Iterator<Item = &'a str>) -> Targets {
    match listed(codes, target) {
        Targets::Default => unknown("code="),
        targets => targets,
    }
}

/// The architectures of one name in a list; an error is the result for the whole list.
type Target = Result<(Option<SmArch>, Option<PtxArch>), Targets>;

/// `sm_80` or `compute_80`.
fn target(name: &str) -> Target {
    let target = (name.parse().ok(), name.parse().ok());
    if target == (None, None) { Err(unknown(name)) } else { Ok(target) }
}

/// The targets in a list; the default if it is empty.
fn listed<'a>(names: impl Iterator<Item = &'a str>, target: impl Fn(&str) -> Target) -> Targets {
    let (mut sass, mut ptx) = (Vec::new(), Vec::new());
    for name in names.map(clean).filter(|name| !name.is_empty()) {
        match target(name) {
            Ok((real, virtual_arch)) => {
                sass.extend(real);
                ptx.extend(virtual_arch);
            }
            Err(targets) => return targets,
        }
    }
    if sass.is_empty() && ptx.is_empty() { Targets::Default } else { Targets::Listed { sass, ptx } }
}

/// Strips the quotes and brackets around lists.
fn clean(target: &str) -> &str {
    target.trim_matches(['[', ']', '"', '\'', '\\', ' '])
}

/// Machine code and PTX of a number: `90a`.
fn numbered(number: &str) -> Option<(SmArch, PtxArch)> {
    Some((format!("sm_{number}").parse().ok()?, format!("compute_{number}").parse().ok()?))
}

/// Parses `CMAKE_CUDA_ARCHITECTURES`: `80;86-real;90-virtual`, `all`, `native`.
pub(super) fn of_cmake(list: &str) -> Targets {
    listed(list.split([';', ' ', ',']), |name| {
        let (number, kind) = name.split_once('-').unwrap_or((name, ""));
        match (kind, numbered(number)) {
            _ if number == "all" => Err(Targets::All),
            ("", Some((real, virtual_arch))) => Ok((Some(real), Some(virtual_arch))),
            ("real", Some((real, _))) => Ok((Some(real), None)),
            ("virtual", Some((_, virtual_arch))) => Ok((None, Some(virtual_arch))),
            _ => Err(unknown(name)),
        }
    })
}

/// The targets in a `CMakeLists.txt` or a makefile; `None` if it compiles no CUDA code.
pub(super) fn of_build_file(text: &str) -> Option<Targets> {
    let lower = text.to_ascii_lowercase();
    let is_cmake = lower.contains("cmake_minimum_required") || lower.contains("project(");
    if is_cmake { of_cmake_lists(text, &lower) } else { of_makefile(text) }
}

fn of_cmake_lists(text: &str, lower: &str) -> Option<Targets> {
    let code = || text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let names_cuda = code().any(|line| line.contains("CUDA"))
        || lower.contains("enable_language(cuda)")
        || lower.contains(".cu");
    if !names_cuda {
        return None;
    }
    let mut targets = Targets::Default;
    for line in code() {
        for key in ["CMAKE_CUDA_ARCHITECTURES", "CUDA_ARCHITECTURES"] {
            // `set(KEY 80 86)` and `set_target_properties(app PROPERTIES KEY "80;86")`; a test of the variable is neither.
            let Some((before, value)) = line.split_once(key) else { continue };
            let is_set = before.trim_end().ends_with('(') && before.to_ascii_lowercase().contains("set(")
                || before.contains("PROPERT");
            let value = value.split(')').next().unwrap_or_default();
            let value = value.split(" CACHE ").next().unwrap_or_default();
            if !is_set || key == "CUDA_ARCHITECTURES" && before.ends_with("CMAKE_") {
                continue;
            }
            targets.add(if value.contains('$') { unknown(value.trim()) } else { of_cmake(value) });
        }
        if line.contains("-gencode") || line.contains("-arch=") || line.contains("--gpu-architecture") {
            targets.add(of_text(line));
        }
        if line.contains("cuda_select_nvcc_arch_flags") {
            targets.add(unknown("cuda_select_nvcc_arch_flags"));
        }
    }
    Some(targets)
}

/// Parses the options in a line of a build file, with quotes, parentheses and semicolons between them.
fn of_text(line: &str) -> Targets {
    if line.contains('$') && !line.contains("sm_") && !line.contains("compute_") {
        return unknown(line.trim());
    }
    of_nvcc(line.split([' ', '\t', '"', '\'', ';', '(', ')']).filter(|arg| !arg.is_empty()))
}

fn of_makefile(text: &str) -> Option<Targets> {
    let code = || text.lines().map(|line| line.split('#').next().unwrap_or_default());
    if !code().any(|line| line.contains("nvcc") || line.contains("NVCC")) {
        return None;
    }
    let mut targets = Targets::Default;
    for line in code().filter(|line| line.contains("-arch") || line.contains("-gencode")) {
        targets.add(of_text(line));
    }
    // The value of a variable (`-arch=$(ARCH)`) may be set elsewhere, or on the command line.
    if text.contains("-arch=$") || text.contains("code=$") || text.contains("sm_$") {
        return Some(unknown("a variable of the makefile"));
    }
    Some(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(targets: &Targets) -> String {
        match targets {
            Targets::Default => "default".to_owned(),
            Targets::All => "all".to_owned(),
            Targets::Unknown(_) => "unknown".to_owned(),
            Targets::Listed { sass, ptx } => {
                let sass = sass.iter().map(ToString::to_string);
                sass.chain(ptx.iter().map(ToString::to_string)).collect::<Vec<_>>().join(" ")
            }
        }
    }

    #[test]
    fn nvcc_options_determine_machine_code_and_ptx() {
        let cases = [
            ("-o app app.cu", "default"),
            ("-arch=sm_80 app.cu", "sm_80 compute_80"),
            ("-arch sm_80 app.cu", "sm_80 compute_80"),
            ("--gpu-architecture=compute_80 app.cu", "compute_80"),
            ("-arch=compute_80 -code=sm_80,compute_80 x.cu", "sm_80 compute_80"),
            ("-arch=compute_80 -code=sm_80 x.cu", "sm_80"),
            (
                "-gencode arch=compute_70,code=sm_70 -gencode=arch=compute_80,code=[sm_80,compute_80]",
                "sm_70 sm_80 compute_80",
            ),
            ("-gencode arch=compute_90a,code=sm_90a", "sm_90a"),
            ("-arch=native x.cu", "unknown"),
            ("-arch=all-major x.cu", "all"),
        ];
        for (command, expected) in cases {
            assert_eq!(written(&of_nvcc(command.split(' '))), expected, "{command}");
        }
    }

    #[test]
    fn lists_of_cmake_and_pytorch_are_read() {
        type Read = fn(&str) -> Targets;
        let cases: [(Read, &str, &str); 9] = [
            (of_cmake, "80", "sm_80 compute_80"),
            (of_cmake, "70-real;80", "sm_70 sm_80 compute_80"),
            (of_cmake, "90-virtual", "compute_90"),
            (of_cmake, "native", "unknown"),
            (of_cmake, "all-major", "all"),
            (Targets::of_torch_list, "7.0;8.0+PTX", "sm_70 sm_80 compute_80"),
            (Targets::of_torch_list, "8.0 9.0a", "sm_80 sm_90a"),
            (Targets::of_torch_list, "Ampere", "unknown"),
            (Targets::of_torch_list, "", "default"),
        ];
        for (read, list, expected) in cases {
            assert_eq!(written(&read(list)), expected, "{list}");
        }
    }

    #[test]
    fn build_files_determine_their_architectures() {
        let cases = [
            ("project(a LANGUAGES CXX)\nadd_executable(a a.cpp)\n", None),
            (
                "project(a LANGUAGES CXX CUDA)\nset(CMAKE_CUDA_ARCHITECTURES 75 86)\n",
                Some("sm_75 sm_86 compute_75 compute_86"),
            ),
            (
                "project(a CUDA)\nset_target_properties(a PROPERTIES CUDA_ARCHITECTURES \"80-real\")\n",
                Some("sm_80"),
            ),
            (
                "project(a CUDA)\nif(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)\nset(CMAKE_CUDA_ARCHITECTURES ${ARCHS})\nendif()\n",
                Some("unknown"),
            ),
            ("project(a CUDA)\n", Some("default")),
            ("NVCC=nvcc\napp: app.cu\n\t$(NVCC) -arch=sm_70 -o app app.cu\n", Some("sm_70 compute_70")),
            ("app: app.c\n\tgcc -march=native -o app app.c\n", None),
            ("app: app.cu\n\tnvcc -arch=$(ARCH) -o app app.cu\n", Some("unknown")),
        ];
        for (text, expected) in cases {
            let found = of_build_file(text).map(|targets| written(&targets));
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
