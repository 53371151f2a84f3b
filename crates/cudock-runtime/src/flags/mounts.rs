//! The values of `--volume`, `--mount` and `--tmpfs`.

use std::path::{Path, PathBuf};

use cudock_base::UsageError;

use super::container::is_docker_name;
use super::values::bytes;
use crate::error::RuntimeError;
use crate::home::Home;
use crate::plan::MountPlan;

pub struct Sources<'a> {
    /// The directory that relative paths start from.
    pub directory: &'a Path,
    /// Where named volumes are; `None` if another engine stores them.
    pub home: Option<&'a Home>,
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
    ) -> Result<MountPlan, RuntimeError> {
        let source = match self.home {
            Some(home) => home.volume_data(name)?,
            None => PathBuf::new(),
        };
        Ok(MountPlan::Volume { name: name.to_owned(), source, target, read_only, copy })
    }

    fn bind(&self, source: &str, target: &str, read_only: bool) -> Result<MountPlan, RuntimeError> {
        let source = self.directory.join(source);
        if !source.exists() {
            return Err(UsageError::new(format!("cannot mount {} at {target}: not found", source.display()))
                .hint(
                    "create it first, or write a name without a slash for a named volume: -v models:/models",
                )
                .into());
        }
        Ok(MountPlan::Bind { source, target: PathBuf::from(target), read_only })
    }
}

/// A volume: SOURCE:TARGET or NAME:TARGET, with `:ro` or `:rw` after it.
pub fn volume(text: &str, sources: &Sources<'_>) -> Result<MountPlan, RuntimeError> {
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
    let (mut read_only, mut copy) = (false, true);
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match option {
            "ro" => read_only = true,
            "nocopy" => copy = false,
            "rw" | "z" | "Z" | "rprivate" | "private" => {}
            _ => return Err(wrong(&format!("unknown option `{option}`"))),
        }
    }
    if source.is_empty() || !target.starts_with('/') {
        return Err(wrong("the target must be an absolute path"));
    }
    if !is_docker_name(source) {
        return sources.bind(source, target, read_only);
    }
    // Earlier versions had no named volumes, so a directory of this name takes precedence over a new volume.
    let known = sources.home.is_some_and(|home| home.has_volume(source));
    if !known && sources.directory.join(source).exists() {
        (sources.on_note)(&format!(
            "-v {source}:{target} mounts the directory ./{source}; --mount type=volume,source={source} is a named volume"
        ));
        return sources.bind(source, target, read_only);
    }
    sources.named(source, PathBuf::from(target), read_only, copy)
}

/// A mount in docker's long form: type=bind,source=/data,target=/data,readonly.
pub fn mount(text: &str, sources: &Sources<'_>) -> Result<MountPlan, RuntimeError> {
    let wrong = |reason: &str| -> RuntimeError {
        UsageError::new(format!("--mount {text}: {reason}"))
            .hint(
                "--mount type=bind,source=/data,target=/data,readonly; type=volume; type=tmpfs,tmpfs-size=1g",
            )
            .into()
    };
    let (mut kind, mut source, mut target) = ("volume", None, None);
    let (mut read_only, mut copy, mut size, mut mode) = (false, true, None, None);
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
            "bind-propagation" if matches!(value, Some("rprivate" | "private")) => {}
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
        ("bind", Some(source)) => sources.bind(source, target, read_only),
        ("bind", None) => Err(wrong("a bind mount has a source")),
        ("tmpfs", Some(_)) => Err(wrong("a tmpfs has no source")),
        ("tmpfs", None) if read_only => Err(wrong("a read-only tmpfs is useless")),
        ("tmpfs", None) => Ok(MountPlan::Tmpfs { target: PathBuf::from(target), size, mode }),
        ("volume", Some(name)) if is_docker_name(name) => {
            sources.named(name, PathBuf::from(target), read_only, copy)
        }
        ("volume", Some(_)) => Err(wrong("the source of a volume is its name; a path is type=bind")),
        ("volume", None) => Err(wrong("volumes without a name are not supported: give it a source")),
        _ => Err(wrong(&format!("type {kind} is not supported: bind, volume or tmpfs"))),
    }
}

/// A tmpfs: TARGET, with `:size=64m,mode=1777` after it.
pub fn tmpfs(text: &str) -> Result<MountPlan, RuntimeError> {
    let wrong = |reason: &str| -> RuntimeError {
        UsageError::new(format!("`{text}` is not a tmpfs: {reason}"))
            .hint("--tmpfs /scratch:size=1g,mode=1777")
            .into()
    };
    let (target, options) = text.split_once(':').unwrap_or((text, ""));
    if !target.starts_with('/') {
        return Err(wrong("the target is an absolute path"));
    }
    let (mut size, mut mode) = (None, None);
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("size", text)) => size = Some(bytes(text)?),
            Some(("mode", text)) => {
                mode = Some(u32::from_str_radix(text, 8).map_err(|_| wrong("its mode is octal, as 1777"))?);
            }
            // Always applied.
            None if matches!(option, "rw" | "nosuid" | "nodev" | "noexec") => {}
            _ => return Err(wrong(&format!("unknown option `{option}`"))),
        }
    }
    Ok(MountPlan::Tmpfs { target: PathBuf::from(target), size, mode })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tmpfs_has_a_size_and_a_mode() {
        let target = PathBuf::from("/x");
        assert_eq!(
            tmpfs("/x:size=1m,mode=700").unwrap(),
            MountPlan::Tmpfs { target, size: Some(1 << 20), mode: Some(0o700) }
        );
        assert!(tmpfs("x").is_err());
        assert!(tmpfs("/x:sise=1m").is_err());
    }

    #[test]
    fn mounts_are_parsed_as_in_docker() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("data")).unwrap();
        let home = Home::at(directory.path().join("home"));
        let sources = Sources { directory: directory.path(), home: Some(&home), on_note: &|_| {} };
        let bind = |read_only| MountPlan::Bind {
            source: directory.path().join("data"),
            target: "/t".into(),
            read_only,
        };
        let named = |name: &str, read_only, copy| MountPlan::Volume {
            name: name.to_owned(),
            source: home.volume_data(name).unwrap(),
            target: "/t".into(),
            read_only,
            copy,
        };
        let memory = |size, mode| MountPlan::Tmpfs { target: "/t".into(), size, mode };
        for (text, expected) in [
            ("type=bind,source=data,target=/t", bind(false)),
            ("type=bind,src=./data,dst=/t,readonly", bind(true)),
            ("type=bind,src=data,destination=/t,ro=true,bind-propagation=rprivate", bind(true)),
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
            "type=bind,source=data,target=/t,bind-propagation=shared",
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
        assert_eq!(volume("./data:/t", &sources).unwrap(), bind(false));
        assert_eq!(volume("data:/t", &sources).unwrap(), bind(false), "a directory that is here");
        home.create_volume("data").unwrap();
        assert_eq!(volume("data:/t", &sources).unwrap(), named("data", false, true), "a volume that exists");
        for wrong in ["models", "models:t", ":/t", "./nowhere:/t", "models:/t:rx", "a:b:c:d"] {
            assert!(volume(wrong, &sources).is_err(), "{wrong}");
        }
    }
}
