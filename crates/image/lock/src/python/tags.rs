//! Names of wheels, and which of them run on a platform (PEP 425, 427 and 600).

use std::cmp::Reverse;

use cudock_base::Arch;

/// The platform that wheels must run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PythonPlatform {
    /// The minor version of Python 3.
    pub python: u32,
    /// The minor version of glibc 2.
    pub glibc: u32,
    pub arch: Arch,
}

/// The parts of a wheel's name.
#[derive(Debug, PartialEq, Eq)]
pub struct WheelName<'n> {
    /// Normalized.
    pub name: String,
    pub version: &'n str,
    build: &'n str,
    pythons: &'n str,
    abis: &'n str,
    platforms: &'n str,
}

/// How well a wheel fits; the greatest fits best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TagRank {
    /// Whether it is for exactly this interpreter, for its stable ABI, or for any.
    abi: u32,
    /// The newest Python that it is built for.
    python: u32,
    /// The newest glibc that it is built for; nothing for any platform.
    glibc: u32,
    build: u32,
}

impl<'n> WheelName<'n> {
    pub fn parse(file: &'n str) -> Option<Self> {
        let parts: Vec<&str> = file.strip_suffix(".whl")?.split('-').collect();
        let (name, version, build, tags) = match *parts.as_slice() {
            [name, version, ref tags @ ..] if tags.len() == 3 => (name, version, "", tags),
            [name, version, build, ref tags @ ..]
                if tags.len() == 3 && build.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                (name, version, build, tags)
            }
            _ => return None,
        };
        let [pythons, abis, platforms] = *tags else { return None };
        let has_empty_part = [name, version, pythons, abis, platforms].iter().any(|part| part.is_empty());
        (!has_empty_part).then(|| Self { name: normalized(name), version, build, pythons, abis, platforms })
    }

    /// How well it fits a platform; `None` if it does not run there.
    pub fn rank(&self, platform: PythonPlatform) -> Option<TagRank> {
        let glibc = self.platforms.split('.').filter_map(|tag| glibc_of(tag, platform)).max()?;
        let build_digits: String = self.build.chars().take_while(char::is_ascii_digit).collect();
        let build = build_digits.parse().unwrap_or(0);
        let tags =
            self.pythons.split('.').flat_map(|python| self.abis.split('.').map(move |abi| (python, abi)));
        let best = tags.filter_map(|(python, abi)| python_rank(python, abi, platform.python)).max();
        best.map(|(abi, python)| TagRank { abi, python, glibc, build })
    }
}

/// A name as indexes write it (PEP 503).
pub fn normalized(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// The name that fits best; among equals the first in the order of their text.
pub fn best<'f>(files: impl Iterator<Item = &'f str>, platform: PythonPlatform) -> Option<&'f str> {
    files
        .filter_map(|file| Some((WheelName::parse(file)?.rank(platform)?, Reverse(file))))
        .max()
        .map(|(_, Reverse(file))| file)
}

fn glibc_of(tag: &str, platform: PythonPlatform) -> Option<u32> {
    if tag == "any" {
        return Some(0);
    }
    let tag = tag.strip_suffix(platform.arch.name())?.strip_suffix('_')?;
    let glibc = match tag {
        "linux" => 1,
        "manylinux1" => 5,
        "manylinux2010" => 12,
        "manylinux2014" => 17,
        other => other.strip_prefix("manylinux_2_")?.parse().ok()?,
    };
    (glibc <= platform.glibc).then_some(glibc)
}

fn python_rank(python: &str, abi: &str, minor: u32) -> Option<(u32, u32)> {
    let of = |prefix: &str| python.strip_prefix(prefix)?.parse::<u32>().ok();
    match abi {
        "none" if python == "py3" => Some((0, 0)),
        "none" => of("py3").or_else(|| of("cp3")).filter(|built| *built <= minor).map(|built| (0, built)),
        "abi3" => of("cp3").filter(|built| *built <= minor).map(|built| (1, built)),
        abi => {
            let own = format!("cp3{minor}");
            (python == own && abi == own).then_some((2, minor))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HERE: PythonPlatform = PythonPlatform { python: 12, glibc: 36, arch: Arch::X86_64 };

    #[test]
    fn names_are_taken_apart() {
        let name = WheelName::parse("My_Pkg-1.0+cu126-2b-cp312-cp312-linux_x86_64.whl").unwrap();
        assert_eq!((name.name.as_str(), name.version, name.build), ("my-pkg", "1.0+cu126", "2b"));
        for wrong in
            ["a-1.tar.gz", "a-1-py3-none.whl", "a-1-x-py3-none-any.whl", "-1-py3-none-any.whl", ".whl"]
        {
            assert_eq!(WheelName::parse(wrong), None, "{wrong}");
        }
        assert_eq!(normalized("A.b__C-d"), "a-b-c-d");
    }

    #[test]
    fn the_best_of_the_wheels_that_run_is_chosen() {
        let tags = [
            "cp312-cp312-manylinux_2_34_x86_64",
            "cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64",
            "cp38-abi3-manylinux_2_28_x86_64",
            "cp37-abi3-manylinux1_x86_64",
            "py3-none-manylinux_2_27_x86_64",
            "py2.py3-none-any",
        ];
        for first in 0..tags.len() {
            let files: Vec<String> = tags[first..].iter().rev().map(|tag| format!("a-1-{tag}.whl")).collect();
            let chosen = best(files.iter().map(String::as_str), HERE);
            assert_eq!(chosen, Some(format!("a-1-{}.whl", tags[first]).as_str()));
        }
    }

    #[test]
    fn wheels_of_other_platforms_do_not_run() {
        for tag in [
            "cp311-cp311-manylinux_2_28_x86_64",
            "cp312-cp312t-manylinux_2_28_x86_64",
            "cp313-abi3-manylinux_2_28_x86_64",
            "cp312-cp312-manylinux_2_39_x86_64",
            "cp312-cp312-manylinux_2_28_aarch64",
            "cp312-cp312-musllinux_1_2_x86_64",
            "cp312-cp312-win_amd64",
            "cp312-cp312-macosx_11_0_universal2",
            "py2-none-any",
            "py313-none-any",
            "pp310-pypy310_pp73-manylinux_2_28_x86_64",
        ] {
            assert_eq!(best([format!("a-1-{tag}.whl").as_str()].into_iter(), HERE), None, "{tag}");
        }
    }

    #[test]
    fn a_later_build_comes_first() {
        let files = ["a-1-1-py3-none-any.whl", "a-1-10-py3-none-any.whl", "a-1-py3-none-any.whl"];
        assert_eq!(best(files.into_iter(), HERE), Some("a-1-10-py3-none-any.whl"));
    }

    proptest! {
        #[test]
        fn any_name_is_read(name in "[a-c0-9.+_é-]{0,12}(-(cp3|py3|py)?[0-9]{0,12}){0,2}-?(any|manylinux_2_[0-9]{0,12}_x86_64)?(.whl)?") {
            if let Some(wheel) = WheelName::parse(&name) {
                let _ = wheel.rank(HERE);
            }
        }
    }
}
