//! What the query does, in order, with a name for each thing that can hang or fail.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One thing that is about to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The device it is done to, as CUDA counts them.
    pub device: Option<u32>,
    /// What is done.
    pub action: Action,
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (words, call) = self.action.row();
        match self.device {
            Some(device) => write!(out, "{words} GPU {device} ({call})"),
            None => write!(out, "{words} ({call})"),
        }
    }
}

macro_rules! actions {
    ($($name:ident $words:literal $call:literal)*) => {
        /// What is done in a [`Step`]. The words go before "GPU 0" where it is done to a device.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Action {
            $(#[doc = concat!("`", $call, "`: ", $words)] $name,)*
        }

        impl Action {
            /// All of them, in the order in which they are first taken.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            const fn row(self) -> (&'static str, &'static str) {
                match self {
                    $(Self::$name => ($words, $call),)*
                }
            }
        }
    };
}

actions! {
    LoadLibrary "loading the driver's library" "dlopen"
    Initialise "starting the driver" "cuInit"
    DriverVersion "asking for the driver's version" "cuDriverGetVersion"
    CountDevices "counting GPUs" "cuDeviceGetCount"
    OpenDevice "opening" "cuDeviceGet"
    Name "asking for the name of" "cuDeviceGetName"
    Uuid "asking for the UUID of" "cuDeviceGetUuid"
    Capability "asking for the compute capability of" "cuDeviceGetAttribute"
    TotalMemory "asking for the memory of" "cuDeviceTotalMem"
    BusId "asking for the PCI address of" "cuDeviceGetPCIBusId"
    RetainContext "making a context on" "cuDevicePrimaryCtxRetain"
    EnterContext "entering the context of" "cuCtxSetCurrent"
    FreeMemory "asking for the free memory of" "cuMemGetInfo"
    Allocate "allocating memory on" "cuMemAlloc"
    CopyIn "copying to" "cuMemcpyHtoD"
    LoadKernel "compiling a kernel for" "cuModuleLoadData"
    FindKernel "looking up the kernel on" "cuModuleGetFunction"
    Launch "launching a kernel on" "cuLaunchKernel"
    Synchronise "waiting for" "cuCtxSynchronize"
    CopyOut "copying from" "cuMemcpyDtoH"
    UnloadKernel "unloading the kernel from" "cuModuleUnload"
    FreeAllocated "freeing memory on" "cuMemFree"
    ReleaseContext "releasing the context of" "cuDevicePrimaryCtxRelease"
}

impl Action {
    /// The function that is called, without the suffix that tells its versions apart.
    pub const fn call(self) -> &'static str {
        self.row().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_says_what_is_done_to_which_device() {
        let step = Step { device: Some(3), action: Action::Launch };
        assert_eq!(step.to_string(), "launching a kernel on GPU 3 (cuLaunchKernel)");
        let step = Step { device: None, action: Action::Initialise };
        assert_eq!(step.to_string(), "starting the driver (cuInit)");
    }
}
