//! The steps of a query, each of which can hang or fail.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryStep {
    /// The device, if any, by CUDA's index.
    pub device: Option<u32>,
    pub action: QueryAction,
}

impl fmt::Display for QueryStep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, call) = self.action.row();
        match self.device {
            Some(device) => write!(out, "{text} GPU {device} ({call})"),
            None => write!(out, "{text} ({call})"),
        }
    }
}

macro_rules! actions {
    ($($name:ident $text:literal $call:literal)*) => {
        /// The action of a [`QueryStep`]. The text is followed by "GPU 0" for actions on a device.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum QueryAction {
            $(#[doc = concat!("`", $call, "`: ", $text)] $name,)*
        }

        impl QueryAction {
            /// All actions, in order.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            const fn row(self) -> (&'static str, &'static str) {
                match self {
                    $(Self::$name => ($text, $call),)*
                }
            }
        }
    };
}

actions! {
    LoadLibrary "loading the driver's library" "dlopen"
    Initialize "initializing the driver" "cuInit"
    DriverVersion "querying the driver's version" "cuDriverGetVersion"
    CountDevices "counting GPUs" "cuDeviceGetCount"
    OpenDevice "opening" "cuDeviceGet"
    Name "querying the name of" "cuDeviceGetName"
    Uuid "querying the UUID of" "cuDeviceGetUuid"
    Capability "querying the compute capability of" "cuDeviceGetAttribute"
    TotalMemory "querying the memory of" "cuDeviceTotalMem"
    BusId "querying the PCI address of" "cuDeviceGetPCIBusId"
    RetainContext "creating a context on" "cuDevicePrimaryCtxRetain"
    EnterContext "entering the context of" "cuCtxSetCurrent"
    FreeMemory "querying the free memory of" "cuMemGetInfo"
    Allocate "allocating memory on" "cuMemAlloc"
    CopyIn "copying to" "cuMemcpyHtoD"
    LoadKernel "compiling a kernel for" "cuModuleLoadData"
    FindKernel "looking up the kernel on" "cuModuleGetFunction"
    Launch "launching a kernel on" "cuLaunchKernel"
    Synchronize "waiting for" "cuCtxSynchronize"
    CopyOut "copying from" "cuMemcpyDtoH"
    UnloadKernel "unloading the kernel from" "cuModuleUnload"
    FreeAllocated "freeing memory on" "cuMemFree"
    ReleaseContext "releasing the context of" "cuDevicePrimaryCtxRelease"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_names_action_and_device() {
        let step = QueryStep { device: Some(3), action: QueryAction::Launch };
        assert_eq!(step.to_string(), "launching a kernel on GPU 3 (cuLaunchKernel)");
        let step = QueryStep { device: None, action: QueryAction::Initialize };
        assert_eq!(step.to_string(), "initializing the driver (cuInit)");
    }
}
