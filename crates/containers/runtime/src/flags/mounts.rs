//! The values of `--volume`, `--mount` and `--tmpfs`.

use std::path::{Path, PathBuf};

use cudock_base::UsageError;

use super::container::is_docker_name;
use super::values::bytes;
use crate::container::config::{MountConfig, Propagation};
use crate::container::home::Home;
use crate::error::RuntimeError;

pub struct Sources<'a> {
    /// The directory that relative paths start from.
    pub directory: &'a Path,
    /// Where named volumes are; `None` if another engine stores them.
    pub home: Option<&'a Home>,
    /// Whether the container may mount file systems itself.
    pub may_mount: bool,
    /// Called with notes for the user.
    pub on_note: &'a dyn Fn(&str),
}

impl Sources<'_> {
    fn named(
        &self,
        name: &str,
        target: PathBuf,
        read_only: bool,
        copy: bool,
    ) -> Result<MountConfig, RuntimeError> {
        let source = match self.home {
            Some(home) => home.volume_data(name)?,
            None => PathBuf::new(),
        };
        Ok(MountConfig::Volume { name: name.to_owned(), source, target, read_only, copy })
    }

    /// A path of this machine, which must exist.
    fn bind(&self, source: &str, target: &str, options: Options) -> Result<MountConfig, RuntimeError> {
        let source = self.directory.join(source);
        if !source.exists() {
            return Err(UsageError::new(format!("cannot mount {} at {target}: not found", source.display()))
                .hint("create it first; -v SOURCE:TARGET creates it as an empty directory")
                .into());
        }
        let Options { read_only, propagation, .. } = options;
        Ok(MountConfig::Bind { source, target: PathBuf::from(target), read_only, create: false, propagation })
    }

    /// A path of this machine, which is created as a directory if it is missing, as docker's `-v` does.
    fn bind_or_create(
        &self,
        written: &str,
        target: &str,
        options: Options,
    ) -> Result<MountConfig, RuntimeError> {
        let source = self.directory.join(written);
        if !source.exists() {
            if !written.starts_with(['/', '.']) {
                return Err(UsageError::new(format!("cannot mount `{written}` at {target}: not found"))
                    .hint("a path that is to be created begins with / or ./; a volume's name has letters, digits, dots, dashes and underscores")
                    .into());
            }
            (self.on_note)(&format!(
                "{} does not exist and is created as an empty directory",
                source.display()
            ));
        }
        let Options { read_only, propagation, .. } = options;
        Ok(MountConfig::Bind { source, target: PathBuf::from(target), read_only, create: true, propagation })
    }
}

/// The options after the second colon of `-v`.
#[derive(Debug, Clone, Copy)]
struct Options {
    read_only: bool,
    /// Whether an empty named volume gets the image's files.
    copy: bool,
    propagation: Propagation,
}

impl Options {
    /// The options of a list, or why they are not supported.
    fn parse(list: &str, may_mount: bool) -> Result<Self, String> {
        let mut options = Self { read_only: false, copy: true, propagation: Propagation::Private };
        for option in list.split(',').filter(|option| !option.is_empty()) {
            match option {
                "ro" => options.read_only = true,
                "nocopy" => options.copy = false,
                // They matter to docker on macOS, and to SELinux, whose labels are never applied.
                "rw" | "cached" | "delegated" | "consistent" | "z" | "Z" => {}
                _ => options.propagation = propagation(option, may_mount)?,
            }
        }
        Ok(options)
    }
}

/// The propagation of a bind mount. What a container mounts itself never reaches this machine, so for one that cannot mount
/// anything, shared is the same as slave.
fn propagation(text: &str, may_mount: bool) -> Result<Propagation, String> {
    match text {
        "private" | "rprivate" => Ok(Propagation::Private),
        "slave" | "rslave" => Ok(Propagation::Slave),
        "shared" | "rshared" if !may_mount => Ok(Propagation::Slave),
        "shared" | "rshared" => {
            Err(format!("{text}: what a container mounts does not appear on this machine; use rslave"))
        }
        _ => Err(format!("unknown option `{text}`")),
    }
}

/// A volume: SOURCE:TARGET or NAME:TARGET, with docker's options after it.
pub fn volume(text: &str, sources: &Sources<'_>) -> Result<MountConfig, RuntimeError> {
    let wrong = |reason: &str| -> RuntimeError {
        UsageError::new(format!("`{text}` is not a volume: {reason}"))
            .hint("-v ./data:/data, -v /models:/models:ro, or -v NAME:/data for a named volume")
            .into()
    };
    let parts: Vec<&str> = text.split(':').collect();
    let (source, target, options) = match parts.as_slice() {
        [source, target] => (*source, *target, ""),
        [source, target, options] => (*source, *target, *options),
        _ => return Err(wrong("it has no target")),
    };
    let options = Options::parse(options, sources.may_mount).map_err(|reason| wrong(&reason))?;
    if source.is_empty() || !target.starts_with('/') {
        return Err(wrong("the target must be an absolute path"));
    }
    if !is_docker_name(source) {
        return sources.bind_or_create(source, target, options);
    }
    // Earlier versions had no named volumes, so a directory of this name takes precedence over a new volume.
    let known = sources.home.is_some_and(|home| home.has_volume(source));
    if !known && sources.directory.join(source).exists() {
        (sources.on_note)(&format!(
            "-v {source}:{target} mounts the directory ./{source}; --mount type=volume,source={source} is a named volume"
        ));
        return sources.bind_or_create(source, target, options);
    }
    sources.named(source, PathBuf::from(target), options.read_only, options.copy)
}

/// A mount in docker's long form: type=bind,source=/data,target=/data,readonly.
pub fn mount(text: &str, sources: &Sources<'_>) -> Result<MountConfig, RuntimeError> {
    let wrong = |reason: &str| -> RuntimeError {
        UsageError::new(format!("--mount {text}: {reason}"))
            .hint(
                "--mount type=bind,source=/data,target=/data,readonly; type=volume; type=tmpfs,tmpfs-size=1g",
            )
            .into()
    };
    let (mut kind, mut source, mut target) = ("volume", None, None);
    let (mut read_only, mut copy, mut size, mut mode) = (false, true, None, None);
    let mut shared = Propagation::Private;
    for field in text.split(',').filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').map_or((field, None), |(name, value)| (name, Some(value)));
        let needed =
            || value.filter(|value| !value.is_empty()).ok_or_else(|| wrong(&format!("{name} has no value")));
        let switch = || match value.unwrap_or("true") {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(wrong(&format!("{name} is true or false"))),
        };
        match name {
            "type" => kind = needed()?,
            "source" | "src" => source = Some(needed()?),
            "target" | "dst" | "destination" => target = Some(needed()?),
            "readonly" | "ro" => read_only = switch()?,
            "rw" => read_only = !switch()?,
            "volume-nocopy" => copy = !switch()?,
            "tmpfs-size" => size = Some(bytes(needed()?)?),
            "tmpfs-mode" => {
                let octal =
                    u32::from_str_radix(needed()?, 8).map_err(|_| wrong("tmpfs-mode is octal, as 1777"))?;
                mode = Some(octal);
            }
            "bind-propagation" => {
                shared = propagation(needed()?, sources.may_mount).map_err(|reason| wrong(&reason))?;
            }
            // Only affects docker on macOS.
            "consistency" => {}
            _ => return Err(wrong(&format!("option {name} is not supported"))),
        }
    }
    let target = target.filter(|target| target.starts_with('/'));
    let target = target.ok_or_else(|| wrong("its target is an absolute path"))?;
    if kind != "tmpfs" && (size.is_some() || mode.is_some()) {
        return Err(wrong("tmpfs-size and tmpfs-mode are for type=tmpfs"));
    }
    match (kind, source) {
        ("bind", Some(source)) => {
            sources.bind(source, target, Options { read_only, copy, propagation: shared })
        }
        ("bind", None) => Err(wrong("a bind mount has a source")),
        ("tmpfs", Some(_)) => Err(wrong("a tmpfs has no source")),
        ("tmpfs", None) if read_only => Err(wrong("a read-only tmpfs is useless")),
        ("tmpfs", None) => {
            Ok(MountConfig::Tmpfs { target: PathBuf::from(target), size, mode, no_exec: true })
        }
        ("volume", Some(name)) if is_docker_name(name) => {
            sources.named(name, PathBuf::from(target), read_only, copy)
        }
        ("volume", Some(_)) => Err(wrong("the source of a volume is its name; a path is type=bind")),
        ("volume", None) => Err(wrong("volumes without a name are not supported: give it a source")),
        _ => Err(wrong(&format!("type {kind} is not supported: bind, volume or tmpfs"))),
    }
}

/// A tmpfs: TARGET, with `:size=64m,mode=1777` after it.
pub fn tmpfs(text: &str) -> Result<MountConfig, RuntimeError> {
    let wrong = |reason: &str| -> RuntimeError {
        UsageError::new(format!("`{text}` is not a tmpfs: {reason}"))
            .hint("--tmpfs /scratch:size=1g,mode=1777")
            .into()
    };
    let (target, options) = text.split_once(':').unwrap_or((text, ""));
    if !target.starts_with('/') {
        return Err(wrong("the target is an absolute path"));
    }
    let (mut size, mut mode, mut no_exec) = (None, None, true);
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match (option.split_once('='), option) {
            (Some(("size", text)), _) => size = Some(bytes(text)?),
            (Some(("mode", text)), _) => {
                mode = Some(u32::from_str_radix(text, 8).map_err(|_| wrong("its mode is octal, as 1777"))?);
            }
            (None, "exec") => no_exec = false,
            (None, "noexec") => no_exec = true,
            // Always applied.
            (None, "rw" | "nosuid" | "nodev") => {}
            _ => return Err(wrong(&format!("unknown option `{option}`"))),
        }
    }
    Ok(MountConfig::Tmpfs { target: PathBuf::from(target), size, mode, no_exec })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tmpfs_has_a_size_and_a_mode() {
        let target = PathBuf::from("/x");
        assert_eq!(
            tmpfs("/x:size=1m,mode=700").unwrap(),
            MountConfig::Tmpfs {
                target: target.clone(),
                size: Some(1 << 20),
                mode: Some(0o700),
                no_exec: true
            }
        );
        assert_eq!(
            tmpfs("/x:rw,exec,nosuid").unwrap(),
            MountConfig::Tmpfs { target, size: None, mode: None, no_exec: false }
        );
        assert!(tmpfs("x").is_err());
        assert!(tmpfs("/x:sise=1m").is_err());
    }

    #[test]
    fn mounts_are_parsed_as_in_docker() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("data")).unwrap();
        let home = Home::at(directory.path().join("home"));
        let sources =
            Sources { directory: directory.path(), home: Some(&home), may_mount: false, on_note: &|_| {} };
        let bound = |name: &str, read_only, create, propagation| MountConfig::Bind {
            source: directory.path().join(name),
            target: "/t".into(),
            read_only,
            create,
            propagation,
        };
        let bind = |read_only| bound("data", read_only, false, Propagation::Private);
        let short = |read_only| bound("data", read_only, true, Propagation::Private);
        let named = |name: &str, read_only, copy| MountConfig::Volume {
            name: name.to_owned(),
            source: home.volume_data(name).unwrap(),
            target: "/t".into(),
            read_only,
            copy,
        };
        let memory = |size, mode| MountConfig::Tmpfs { target: "/t".into(), size, mode, no_exec: true };
        for (text, expected) in [
            ("type=bind,source=data,target=/t", bind(false)),
            ("type=bind,src=./data,dst=/t,readonly", bind(true)),
            ("type=bind,src=data,destination=/t,ro=true,bind-propagation=rprivate", bind(true)),
            (
                "type=bind,src=data,dst=/t,bind-propagation=rslave",
                bound("data", false, false, Propagation::Slave),
            ),
            ("type=volume,source=models,target=/t", named("models", false, true)),
            ("source=models,target=/t,readonly", named("models", true, true)),
            ("type=volume,src=data,dst=/t,volume-nocopy", named("data", false, false)),
            ("type=tmpfs,target=/t", memory(None, None)),
            ("type=tmpfs,target=/t,tmpfs-size=1m,tmpfs-mode=700", memory(Some(1 << 20), Some(0o700))),
        ] {
            assert_eq!(mount(text, &sources).unwrap(), expected, "{text}");
        }
        for wrong in [
            "",
            "type=bind,target=/t",
            "type=bind,source=nowhere,target=/t",
            "type=bind,source=data,target=t",
            "type=bind,source=data,target=/t,bind-propagation=perhaps",
            "type=bind,source=data,target=/t,tmpfs-size=1m",
            "type=volume,target=/t",
            "type=volume,source=../data,target=/t",
            "type=tmpfs,source=data,target=/t",
            "type=npipe,source=data,target=/t",
            "type=volume,source=models,target=/t,volume-driver=nfs",
            "type=bind,source=data,target=/t,readonly=perhaps",
        ] {
            assert!(mount(wrong, &sources).is_err(), "{wrong}");
        }
        assert_eq!(volume("models:/t:ro,nocopy", &sources).unwrap(), named("models", true, false));
        assert_eq!(volume("./data:/t", &sources).unwrap(), short(false));
        assert_eq!(volume("data:/t", &sources).unwrap(), short(false), "a directory that is here");
        for (option, expected) in [
            ("cached", short(false)),
            ("delegated,ro", short(true)),
            ("consistent", short(false)),
            ("ro,z", short(true)),
            ("rshared", bound("data", false, true, Propagation::Slave)),
            ("ro,rslave", bound("data", true, true, Propagation::Slave)),
        ] {
            assert_eq!(volume(&format!("./data:/t:{option}"), &sources).unwrap(), expected, "{option}");
        }
        let mounting = Sources { may_mount: true, ..sources };
        assert!(
            volume("./data:/t:rshared", &mounting).is_err() && volume("./data:/t:rslave", &mounting).is_ok()
        );
        let missing = bound("nowhere/deep", false, true, Propagation::Private);
        assert_eq!(volume("./nowhere/deep:/t", &sources).unwrap(), missing);
        assert!(!directory.path().join("nowhere").exists(), "it is created when the container starts");
        home.create_volume("data").unwrap();
        assert_eq!(volume("data:/t", &sources).unwrap(), named("data", false, true), "a volume that exists");
        for wrong in ["models", "models:t", ":/t", "~:/t", "sub/nowhere:/t", "models:/t:rx", "a:b:c:d"] {
            assert!(volume(wrong, &sources).is_err(), "{wrong}");
        }
    }
}
