//! GPU requests in an image's environment.

use std::collections::BTreeMap;

use super::{Capabilities, DeviceName, Devices, Extras, GpuRequest, flag};
use crate::InjectError;

const DEVICES: &str = "NVIDIA_VISIBLE_DEVICES";
const CAPABILITIES: &str = "NVIDIA_DRIVER_CAPABILITIES";
const CHANNELS: &str = "NVIDIA_IMEX_CHANNELS";

/// Upper bound of channel numbers, exclusive.
const MOST_CHANNELS: u32 = 1 << 20;

impl GpuRequest {
    /// The request of `--gpus`, if given, and the container's environment; none if no GPU is
    /// requested.
    ///
    /// `--gpus` decides about devices. Without it the environment does, if the caller allows that.
    /// Capabilities are taken from `--gpus`, then from the environment.
    pub fn resolve(
        flag: Option<&str>,
        environment: &BTreeMap<String, String>,
        image_may_ask: bool,
    ) -> Result<Option<Self>, InjectError> {
        let (devices, capabilities) = match flag {
            Some(text) => flag::parse(text)?,
            None if image_may_ask => match devices_of(environment)? {
                Some(devices) => (devices, None),
                None => return Ok(None),
            },
            None => return Ok(None),
        };
        let capabilities = capabilities.map_or_else(|| capabilities_of(environment), Ok)?;
        let on = |name: &str, value: &str| environment.get(name).is_some_and(|found| found == value);
        let extras = Extras {
            gds: on("NVIDIA_GDS", "enabled"),
            gdrcopy: on("NVIDIA_GDRCOPY", "enabled"),
            mofed: on("NVIDIA_MOFED", "enabled"),
            nvswitch: on("NVIDIA_NVSWITCH", "enabled"),
            mig_config: on("NVIDIA_MIG_CONFIG_DEVICES", "all"),
            mig_monitor: on("NVIDIA_MIG_MONITOR_DEVICES", "all"),
        };
        Ok(Some(Self { devices, capabilities, imex_channels: channels_of(environment)?, extras }))
    }
}

/// An image from before `NVIDIA_REQUIRE_CUDA`: it names its CUDA version and no requirement.
pub(crate) fn is_legacy(environment: &BTreeMap<String, String>) -> bool {
    let set = |name: &str| environment.get(name).is_some_and(|value| !value.is_empty());
    set("CUDA_VERSION") && !set("NVIDIA_REQUIRE_CUDA")
}

fn devices_of(environment: &BTreeMap<String, String>) -> Result<Option<Devices>, InjectError> {
    let hint = "it lists indices, UUIDs, MIG devices such as 0:1, or is `all`, `none` or `void`";
    let wrong = |text: &str| InjectError::bad_request(DEVICES, text, "no name of a GPU", hint);
    match environment.get(DEVICES).map(|value| value.trim()) {
        None if is_legacy(environment) => Ok(Some(Devices::All)),
        None | Some("" | "void") => Ok(None),
        Some("all") => Ok(Some(Devices::All)),
        Some("none") => Ok(Some(Devices::None)),
        Some(list) => {
            let mut names = Vec::new();
            for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                // A CDI name has the same word after its kind.
                let word = word.strip_prefix("nvidia.com/gpu=").unwrap_or(word);
                if word == "all" {
                    return Ok(Some(Devices::All));
                }
                names.push(DeviceName::parse(word).ok_or_else(|| wrong(word))?);
            }
            Ok((!names.is_empty()).then_some(Devices::Listed(names)))
        }
    }
}

fn capabilities_of(environment: &BTreeMap<String, String>) -> Result<Capabilities, InjectError> {
    match environment.get(CAPABILITIES) {
        Some(text) => Capabilities::parse(text, CAPABILITIES),
        None if is_legacy(environment) => Ok(Capabilities::all()),
        None => Ok(Capabilities::default()),
    }
}

fn channels_of(environment: &BTreeMap<String, String>) -> Result<Vec<u32>, InjectError> {
    let text = environment.get(CHANNELS).map(String::as_str).unwrap_or_default();
    let channel = |word: &str| {
        let number = word.parse().ok().filter(|channel| *channel < MOST_CHANNELS);
        let hint = "it lists numbers below 1048576";
        number.ok_or_else(|| InjectError::bad_request(CHANNELS, word, "no number of a channel", hint))
    };
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(channel).collect()
}

#[cfg(test)]
mod tests {
    use cudock_base::Report as _;

    use super::*;
    use crate::request::Capability;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn requested(pairs: &[(&str, &str)]) -> Option<GpuRequest> {
        GpuRequest::resolve(None, &environment(pairs), true).unwrap()
    }

    #[test]
    fn void_empty_and_unset_ask_for_nothing() {
        for pairs in
            [&[][..], &[(DEVICES, "")], &[(DEVICES, "void")], &[(DEVICES, "void"), ("CUDA_VERSION", "12.4")]]
        {
            assert_eq!(requested(pairs), None, "{pairs:?}");
        }
    }

    #[test]
    fn none_asks_for_the_driver_without_a_gpu() {
        assert_eq!(requested(&[(DEVICES, "none")]).unwrap().devices, Devices::None);
    }

    #[test]
    fn a_legacy_image_asks_for_everything() {
        let request = requested(&[("CUDA_VERSION", "9.0.176")]).unwrap();
        assert_eq!(request.devices, Devices::All);
        assert!(request.capabilities.is_all());
        assert_eq!(requested(&[("CUDA_VERSION", "12.4"), ("NVIDIA_REQUIRE_CUDA", "cuda>=12.4")]), None);
    }

    #[test]
    fn an_image_that_may_not_ask_gets_nothing() {
        let environment = environment(&[(DEVICES, "all")]);
        assert_eq!(GpuRequest::resolve(None, &environment, false).unwrap(), None);
    }

    #[test]
    fn the_flag_decides_devices_and_the_image_capabilities() {
        let environment = environment(&[(DEVICES, "all"), (CAPABILITIES, "video,utility")]);
        let request = GpuRequest::resolve(Some("0,1"), &environment, false).unwrap().unwrap();
        assert_eq!(request.devices, Devices::Listed(vec![DeviceName::Index(0), DeviceName::Index(1)]));
        assert_eq!(request.capabilities, Capabilities::of(&[Capability::Video, Capability::Utility]));
        let request =
            GpuRequest::resolve(Some("all,capabilities=ngx"), &environment, false).unwrap().unwrap();
        assert_eq!(request.capabilities, Capabilities::of(&[Capability::Ngx]));
    }

    #[test]
    fn a_capability_in_the_environment_that_does_not_exist_is_an_error() {
        let environment = environment(&[(DEVICES, "all"), (CAPABILITIES, "computer")]);
        let error = GpuRequest::resolve(None, &environment, true).unwrap_err();
        assert_eq!(error.to_string(), "NVIDIA_DRIVER_CAPABILITIES: no driver capability `computer`");
        assert_eq!(error.hints(), ["did you mean `compute`?"]);
    }

    #[test]
    fn lists_channels_and_extras_are_read() {
        let request = requested(&[
            (DEVICES, "0,nvidia.com/gpu=1,MIG-5a,1:0"),
            (CHANNELS, "0,2047"),
            ("NVIDIA_GDS", "enabled"),
            ("NVIDIA_MIG_MONITOR_DEVICES", "all"),
        ])
        .unwrap();
        let names = [
            DeviceName::Index(0),
            DeviceName::Index(1),
            DeviceName::MigUuid("MIG-5a".to_owned()),
            DeviceName::Mig(1, 0),
        ];
        assert_eq!(request.devices, Devices::Listed(names.to_vec()));
        assert_eq!(request.imex_channels, [0, 2047]);
        assert_eq!(request.extras, Extras { gds: true, mig_monitor: true, ..Extras::default() });
    }

    #[test]
    fn a_channel_beyond_the_last_is_an_error() {
        let environment = environment(&[(DEVICES, "all"), (CHANNELS, "1048576")]);
        assert!(GpuRequest::resolve(None, &environment, true).is_err());
    }
}
