//! The codes this crate can report. Each has a page that `cudock explain` prints.

macro_rules! codes {
    ($($name:ident = $code:literal;)+) => {
        $(pub(crate) const $name: &str = $code;)+

        /// Every code this crate can report.
        pub const ALL: &[&str] = &[$($code),+];
    };
}

codes! {
    NOT_NVIDIA = "CD0105";
    HIDDEN_BY_ENVIRONMENT = "CD0109";
    LIBCUDA_MISSING = "CD0203";
    STUB_FIRST = "CD0205";
    EMPTY_LIBRARY = "CD0206";
    COMPAT_DOES_NOT_FIT = "CD0207";
    BRANCH_DROPPED_CARD = "CD0209";
    COMPAT_NOT_ON_CARD = "CD0215";
    DRIVER_TOO_OLD_FOR_CARD = "CD0216";
    RUNTIME_NEWER_THAN_DRIVER = "CD0217";
    DRIVER_ASSUMED = "CD0218";
    COMPAT_IN_USE = "CD0219";
    CPU_BUILD = "CD0401";
    DRIVER_TOO_OLD = "CD0402";
    LIBRARY_NOT_INSTALLED = "CD0403";
    BUILD_UNKNOWN = "CD0408";
    BUILT_FOR_ROCM = "CD0409";
    VERSION_NOT_PINNED = "CD0410";
    NO_CODE_FOR_GPU = "CD0501";
    JIT_ONLY = "CD0502";
    PTX_TOO_NEW = "CD0503";
    SOME_MODULES_WITHOUT_CODE = "CD0504";
    JIT_SWITCHED = "CD0505";
    VENDOR_LIBRARY_WITHOUT_CODE = "CD0506";
    UNREADABLE_BINARY = "CD0507";
    WRONG_PLATFORM = "CD0601";
    GATE_REFUSES = "CD0602";
    GATE_MALFORMED = "CD0603";
    NO_DEVICES_ASKED_FOR = "CD0604";
    NO_COMPUTE_CAPABILITY = "CD0605";
    DRIVER_BAKED_IN = "CD0606";
    LIBRARY_NOT_FOUND = "CD0607";
    GLIBC_TOO_OLD = "CD0608";
    NOTHING_USES_A_GPU = "CD0609";
    NOT_READ = "CD0610";
    GATE_SKIPPED = "CD0611";
    NOT_EXECUTABLE = "CD0612";
    SIZE_RETIRED = "CD0801";
    VGPU_DRIVER = "CD0802";
}
