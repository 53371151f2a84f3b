//! `--gpus`, in this command's words and in docker's.

use super::{Capabilities, DeviceName, Devices};
use crate::InjectError;

const FORMS: &str =
    "write `all`, `none`, a count such as 2, a list such as 0,1 or GPU-… or 0:1, or `device=0`";

/// Parses `--gpus`. Capabilities that it does not mention are left to the image. A single number is
/// a count, as in docker; a list, even of one with `device=` before it, names GPUs.
pub(super) fn parse(text: &str) -> Result<(Devices, Option<Capabilities>), InjectError> {
    let wrong = |why| InjectError::bad_request("--gpus", text, why, FORMS);
    let fields = fields(text).ok_or_else(|| wrong("a quote that is not closed"))?;
    let mut devices: Option<Devices> = None;
    let mut names: Vec<DeviceName> = Vec::new();
    let mut capabilities = None;
    for (at, field) in fields.iter().enumerate() {
        let mut set = |value: Devices| match devices.replace(value) {
            None => Ok(()),
            Some(_) => Err(wrong("two answers to which GPUs")),
        };
        match field.split_once('=') {
            Some(("device", list)) => {
                for name in list.split(',').filter(|name| !name.is_empty()) {
                    names.push(DeviceName::parse(name).ok_or_else(|| wrong("no name of a GPU"))?);
                }
                if names.is_empty() {
                    return Err(wrong("`device=` without a name"));
                }
            }
            Some(("count", "all" | "-1")) => set(Devices::All)?,
            Some(("count", count)) => set(self::count(count).ok_or_else(|| wrong("no count"))?)?,
            Some(("capabilities", list)) => capabilities = Some(driver_capabilities(list)?),
            Some(("driver", "nvidia" | "")) => {}
            Some(("driver", _)) => return Err(wrong("a driver other than nvidia")),
            Some(_) => return Err(wrong("an unknown key")),
            None if field == "all" => set(Devices::All)?,
            None if field == "none" => set(Devices::None)?,
            None if field == "0" && fields.len() == 1 => {
                let hint = "write `device=0` for the first GPU, or `none`";
                return Err(InjectError::bad_request("--gpus", text, "a count of no GPU", hint));
            }
            // docker's `2,capabilities=utility`: a number that no other name follows is a count.
            None if at == 0
                && count(field).is_some()
                && fields.iter().skip(1).all(|next| next.contains('=')) =>
            {
                set(count(field).ok_or_else(|| wrong("no count"))?)?;
            }
            None => names.push(DeviceName::parse(field).ok_or_else(|| wrong("no name of a GPU"))?),
        }
    }
    let devices = match (devices, names.is_empty()) {
        (Some(devices), true) => devices,
        (None, false) => Devices::Listed(names),
        (Some(_), false) => return Err(wrong("two answers to which GPUs")),
        // docker's `capabilities=utility` alone requests one.
        (None, true) if capabilities.is_some() => Devices::Count(1),
        (None, true) => return Err(wrong("empty request")),
    };
    Ok((devices, capabilities))
}

fn count(text: &str) -> Option<Devices> {
    let count: u32 = text.parse().ok()?;
    (count > 0 && !text.starts_with('+')).then_some(Devices::Count(count))
}

/// docker's `gpu` and `nvidia` request a GPU, and not a part of the driver.
fn driver_capabilities(list: &str) -> Result<Capabilities, InjectError> {
    let ours: Vec<&str> =
        list.split(',').map(str::trim).filter(|name| !matches!(*name, "gpu" | "nvidia")).collect();
    Capabilities::parse(&ours.join(","), "--gpus")
}

/// Fields between commas, where double quotes hold commas together, as in docker's `"device=0,1",capabilities=utility`.
fn fields(text: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for letter in text.trim().chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            letter => fields.last_mut()?.push(letter),
        }
    }
    let fields = fields.iter().map(|field| field.trim().to_owned()).filter(|field| !field.is_empty());
    (!quoted).then(|| fields.collect())
}

#[cfg(test)]
mod tests {
    use cudock_base::Report as _;

    use super::*;
    use crate::request::Capability;

    fn devices(text: &str) -> Devices {
        parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).0
    }

    #[test]
    fn every_form_of_devices_is_read() {
        let listed = |names: &[DeviceName]| Devices::Listed(names.to_vec());
        assert_eq!(devices("all"), Devices::All);
        assert_eq!(devices("none"), Devices::None);
        assert_eq!(devices("2"), Devices::Count(2));
        assert_eq!(devices("count=3"), Devices::Count(3));
        assert_eq!(devices("0,1"), listed(&[DeviceName::Index(0), DeviceName::Index(1)]));
        assert_eq!(devices("device=0"), listed(&[DeviceName::Index(0)]));
        assert_eq!(devices("GPU-5a"), listed(&[DeviceName::Uuid("GPU-5a".to_owned())]));
        assert_eq!(devices("MIG-5a"), listed(&[DeviceName::MigUuid("MIG-5a".to_owned())]));
        assert_eq!(devices("0:1"), listed(&[DeviceName::Mig(0, 1)]));
        assert_eq!(devices("0000:3B:00.0"), listed(&[DeviceName::Bus("0000:3b:00.0".to_owned())]));
        assert_eq!(devices("\"device=0,1\""), listed(&[DeviceName::Index(0), DeviceName::Index(1)]));
    }

    #[test]
    fn dockers_quoted_list_goes_with_capabilities() {
        let names = vec![DeviceName::Index(0), DeviceName::Uuid("GPU-5a".to_owned())];
        let utility = Capabilities::of(&[Capability::Utility]);
        assert_eq!(
            parse("\"device=0,GPU-5a\",capabilities=utility").unwrap(),
            (Devices::Listed(names), Some(utility))
        );
        let flag = parse("all,\"capabilities=compute,utility\"").unwrap();
        assert_eq!(flag, (Devices::All, Some(Capabilities::default())));
        assert_eq!(devices("2,capabilities=gpu"), Devices::Count(2));
        assert_eq!(devices("capabilities=video"), Devices::Count(1));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_way_out() {
        for text in ["", "0", "-1", "all,none", "all,0", "device=", "gpu0", "\"device=0", "driver=amd", "x=1"]
        {
            let error = parse(text).unwrap_err();
            assert!(matches!(error, InjectError::BadRequest { .. }), "{text}: {error}");
            assert!(!error.hints().is_empty(), "{text}");
        }
    }

    #[test]
    fn an_unknown_capability_suggests_the_one_that_was_meant() {
        let error = parse("all,capabilities=grafics").unwrap_err();
        assert_eq!(error.to_string(), "--gpus: no driver capability `grafics`");
        assert_eq!(error.hints(), ["did you mean `graphics`?"]);
        let error = parse("all,capabilities=zzz").unwrap_err();
        assert!(error.hints()[0].starts_with("there are: compute, "));
    }
}
