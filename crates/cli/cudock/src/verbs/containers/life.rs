//! The verbs `kill`, `start`, `restart`, `cp`, `top`, `images` and `pull`.

use cudock_base::Environment;
use cudock_base::text::format::fixed_bytes;
use cudock_base::text::table::TextTable;
use cudock_cli::{CpArgs, KillArgs, PullArgs, RestartArgs, StartArgs, TopArgs};
use cudock_image::{Access, Pull, cached_images};
use cudock_runtime::files::copy::{CopyRequest, Direction};
use cudock_runtime::flags::{self, path_in_container};

use super::reports::{CachedImageReport, ImagesReport, PullReport, PulledImage, TopReport};
use super::text::age_of;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, line, status, table, warning};
use crate::steps::engine::{builtin, engine_of, engine_of_all};
use crate::steps::images::{platform, progress};

/// `cudock kill`.
pub(crate) fn kill(args: &KillArgs) -> Result<Outcome, Failure> {
    let engine = engine_of_all(&args.targets)?;
    for container in &args.targets.containers {
        engine.kill(container, &args.signal)?;
        line(container);
    }
    Ok(Outcome::Yes)
}

/// `cudock start`.
pub(crate) fn start(args: &StartArgs) -> Result<Outcome, Failure> {
    let given = flags::variables(&args.env, &args.env_file)?;
    if args.attach && args.targets.containers.len() > 1 {
        return Err(Failure::input("--attach is for one container").hint("cudock start -a NAME"));
    }
    let engine = engine_of(&args.targets.engine, None)?;
    for container in &args.targets.containers {
        let code = engine.start(container, &given, args.attach)?;
        if args.attach {
            return Ok(Outcome::Program(code));
        }
        line(container);
    }
    Ok(Outcome::Yes)
}

/// `cudock restart`.
pub(crate) fn restart(args: &RestartArgs) -> Result<Outcome, Failure> {
    let engine = engine_of_all(&args.targets)?;
    for container in &args.targets.containers {
        engine.restart(container, args.time)?;
        line(container);
    }
    Ok(Outcome::Yes)
}

/// `cudock cp`.
pub(crate) fn cp(args: &CpArgs) -> Result<Outcome, Failure> {
    let (source, target) = (path_in_container(&args.source), path_in_container(&args.target));
    let (name, direction, inside, outside) = match (source, target) {
        (Some((name, path)), None) => (name, Direction::Out, path, &args.target),
        (None, Some((name, path))) => (name, Direction::In, path, &args.source),
        (Some(_), Some(_)) => {
            return Err(Failure::input(
                "cp copies between a container and this machine, not between containers",
            )
            .hint("copy to a directory here first"));
        }
        (None, None) => {
            return Err(Failure::input("neither path is in a container").hint("cudock cp NAME:/path ./here"));
        }
    };
    if outside == "-" {
        return Err(Failure::input("cp does not read or write archives")
            .hint(format!("cudock exec -i {name} tar -C DIR -c .")));
    }
    let request = CopyRequest {
        direction,
        inside: inside.to_owned(),
        outside: outside.clone(),
        archive: args.archive,
        follow_link: args.follow_link,
    };
    let name = name.to_owned();
    let copied = engine_of(&args.engine, Some(&name))?.copy(&name, &request)?;
    if copied.skipped > 0 {
        warning(format!("skipped {} devices, pipes or sockets", copied.skipped));
    }
    if copied.entries > 0 {
        status(format!("copied {} entries, {}", copied.entries, fixed_bytes(copied.bytes)));
    }
    Ok(Outcome::Yes)
}

/// `cudock top`.
pub(crate) fn top(args: &TopArgs, format: Format) -> Result<Outcome, Failure> {
    let processes = engine_of(&args.engine, Some(&args.container))?.processes(&args.container)?;
    if format != Format::Text {
        output::report(&TopReport { processes: &processes });
        return Ok(Outcome::Yes);
    }
    let rows = processes.iter().map(|process| {
        let seconds = process.cpu_seconds;
        vec![
            process.pid.to_string(),
            process.pid_inside.to_string(),
            process.parent.to_string(),
            process.uid.to_string(),
            format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60),
            process.command.clone(),
        ]
    });
    table(&TextTable::list(&["PID", "INSIDE", "PPID", "UID", "TIME", "COMMAND"], rows.collect()));
    Ok(Outcome::Yes)
}

/// `cudock images`.
pub(crate) fn images(format: Format, is_quiet: bool) -> Result<Outcome, Failure> {
    let images = cached_images(&Environment::of_process())?;
    match format {
        Format::Text if is_quiet => images.iter().for_each(|image| line(image.tag.digest.to_string())),
        Format::Text => {
            let rows = images.iter().map(|image| {
                let size = image.bytes.map_or_else(|| "-".to_owned(), fixed_bytes);
                let digest: String = image.tag.digest.hex().chars().take(12).collect();
                let state = if image.complete { "complete" } else { "partial" }.to_owned();
                let fetched = age_of(image.tag.fetched.saturating_mul(1000));
                vec![image.tag.reference.to_string(), digest, size, state, format!("{fetched} ago")]
            });
            table(&TextTable::list(&["IMAGE", "DIGEST", "SIZE", "LAYERS", "FETCHED"], rows.collect()));
        }
        Format::Json => {
            let rows = images.iter().map(|image| CachedImageReport {
                image: image.tag.reference.to_string(),
                digest: image.tag.digest.to_string(),
                bytes: image.bytes,
                complete: image.complete,
                fetched: image.tag.fetched,
            });
            output::report(&ImagesReport { images: rows.collect() });
        }
    }
    Ok(Outcome::Yes)
}

/// `cudock pull`.
pub(crate) fn pull(args: &PullArgs, format: Format) -> Result<Outcome, Failure> {
    let platform = platform(args.platform.as_deref())?;
    let access = Access { platform, offline: false, pull: Some(Pull::Always), progress: progress() };
    let engine = builtin(access)?;
    let mut pulled = Vec::new();
    for image in &args.images {
        let opened = engine.pull(image)?;
        if format == Format::Text {
            line(&opened.name);
        }
        let bytes: u64 = opened.layers.iter().map(|layer| layer.size).sum();
        pulled.push(PulledImage { image: opened.name, layers: opened.layers.len(), bytes });
    }
    if format != Format::Text {
        output::report(&PullReport { images: pulled });
    }
    Ok(Outcome::Yes)
}
