//! Derives the requirement of images without `NVIDIA_REQUIRE_CUDA` from their `CUDA_VERSION`.

/// `12.4` of `12.4.1`. Accepts what Go's semver accepts: up to three numbers without leading zeros, and after three of
/// them a pre-release and a build.
pub(super) fn major_minor(version: &str) -> Option<String> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let (version, build) = split_off(version, '+');
    let (version, pre) = split_off(version, '-');
    let number = |part: &str| {
        let plain = part == "0" || !part.starts_with('0');
        (plain && !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())).then_some(())
    };
    let identifier = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let parts: Vec<&str> = version.split('.').collect();
    parts.iter().try_for_each(|part| number(part))?;
    let tails = build.is_some() || pre.is_some();
    if parts.len() > 3 || tails && parts.len() < 3 {
        return None;
    }
    let numeric = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let pre_fits = pre.is_none_or(|pre| {
        pre.split('.').all(|part| identifier(part) && (!numeric(part) || number(part).is_some()))
    });
    if !pre_fits || !build.is_none_or(|build| build.split('.').all(identifier)) {
        return None;
    }
    let (major, minor) = (parts.first()?, parts.get(1).unwrap_or(&"0"));
    let fits = |part: &str| part.parse::<u32>().is_ok();
    (fits(major) && fits(minor)).then(|| format!("{major}.{minor}"))
}

fn split_off(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(head, tail)| (head, Some(tail)))
}
