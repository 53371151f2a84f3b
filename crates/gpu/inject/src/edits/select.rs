use crate::InjectError;
use crate::driver::{Driver, DriverGpu, DriverKind, MigDevice, short_bus};
use crate::request::{DeviceName, Devices};

/// A selected GPU, with its selected MIG devices.
#[derive(Debug, Clone)]
pub(super) struct Chosen<'a> {
    pub(super) gpu: &'a DriverGpu,
    pub(super) mig: Vec<&'a MigDevice>,
}

/// The requested GPUs, each once, in the order of their numbers. A partitioned GPU that is
/// requested as a whole comes with all its MIG devices. Under WSL2 there is only one choice.
pub(super) fn select<'a>(driver: &'a Driver, devices: &Devices) -> Result<Vec<Chosen<'a>>, InjectError> {
    if driver.kind == DriverKind::Wsl {
        return Ok(Vec::new());
    }
    let mut chosen: Vec<Chosen<'a>> = Vec::new();
    let whole = |gpu: &'a DriverGpu| Chosen { gpu, mig: gpu.mig.iter().collect() };
    match devices {
        Devices::None => {}
        _ if driver.gpus.is_empty() => return Err(InjectError::NoGpu),
        Devices::All => chosen.extend(driver.gpus.iter().map(whole)),
        Devices::Count(count) => {
            let there = driver.gpus.len();
            let asked = usize::try_from(*count).unwrap_or(usize::MAX);
            if asked > there {
                return Err(InjectError::TooFew { asked: *count, there });
            }
            chosen.extend(driver.gpus.iter().take(asked).map(whole));
        }
        Devices::Listed(names) => {
            for name in names {
                let one = named(driver, name).ok_or_else(|| InjectError::UnknownGpu {
                    name: name.to_string(),
                    known: known(driver),
                })?;
                match chosen.iter_mut().find(|known| known.gpu.minor == one.gpu.minor) {
                    None => chosen.push(one),
                    Some(known) => {
                        let more =
                            one.mig.into_iter().filter(|mig| !known.mig.contains(mig)).collect::<Vec<_>>();
                        known.mig.extend(more);
                    }
                }
            }
            chosen.sort_by_key(|chosen| chosen.gpu.index);
        }
    }
    for one in &mut chosen {
        one.mig.sort_by_key(|mig| mig.index);
    }
    Ok(chosen)
}

fn named<'a>(driver: &'a Driver, name: &DeviceName) -> Option<Chosen<'a>> {
    let whole = |gpu: &'a DriverGpu| Chosen { gpu, mig: gpu.mig.iter().collect() };
    let mut gpus = driver.gpus.iter();
    match name {
        DeviceName::Index(index) => gpus.find(|gpu| gpu.index == *index).map(whole),
        DeviceName::Bus(bus) => gpus.find(|gpu| short_bus(&gpu.bus) == short_bus(bus)).map(whole),
        DeviceName::Uuid(uuid) => {
            let mut like =
                gpus.filter(|gpu| gpu.uuid.as_deref().is_some_and(|whole| whole.starts_with(uuid.as_str())));
            let first = like.next()?;
            // The beginning of a UUID names a GPU only if it is the only one that begins so.
            like.next().is_none().then(|| whole(first))
        }
        DeviceName::Mig(gpu, index) => {
            let gpu = gpus.find(|known| known.index == *gpu)?;
            let mig = gpu.mig.iter().find(|mig| mig.index == *index)?;
            Some(Chosen { gpu, mig: vec![mig] })
        }
        DeviceName::MigUuid(uuid) => gpus.find_map(|gpu| {
            let mig = gpu
                .mig
                .iter()
                .find(|mig| mig.uuid.as_deref() == Some(uuid) || old_name(gpu, mig) == Some(uuid.clone()))?;
            Some(Chosen { gpu, mig: vec![mig] })
        }),
    }
}

/// The name of a MIG device in drivers before 470: `MIG-GPU-5a…/3/0`.
fn old_name(gpu: &DriverGpu, mig: &MigDevice) -> Option<String> {
    let uuid = gpu.uuid.as_ref()?;
    Some(format!("MIG-{uuid}/{}/{}", mig.gpu_instance, mig.compute_instance))
}

fn known(driver: &Driver) -> Vec<String> {
    let mut names = Vec::new();
    for gpu in &driver.gpus {
        let uuid = gpu.uuid.as_ref().map_or_else(String::new, |uuid| format!(" ({uuid})"));
        names.push(format!("{}{uuid}", gpu.index));
        names.extend(gpu.mig.iter().map(|mig| {
            let uuid = mig.uuid.as_ref().map_or_else(String::new, |uuid| format!(" ({uuid})"));
            format!("{}:{}{uuid}", gpu.index, mig.index)
        }));
    }
    names
}
