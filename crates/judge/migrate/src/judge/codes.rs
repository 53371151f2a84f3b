//! The codes this crate can report. Each has a page that `cudock explain` prints.

cudock_facts::codes! {
    /// Machine code for the old GPU does not run on the new one.
    NO_CODE_FOR_GPU = "CD0501";
    SIZE_RETIRED = "CD0801";
    /// The new size needs the GRID driver.
    VGPU_DRIVER = "CD0802";
    /// The service no longer has GPUs.
    SERVICE_WITHOUT_GPU = "CD0803";
    /// The new size has fewer GPUs.
    FEWER_GPUS = "CD0806";
    /// The new size has no `InfiniBand`.
    NO_INTERCONNECT = "CD0807";
    /// The new size has fewer processors or less memory.
    SMALLER_MACHINE = "CD0808";
    /// The new size has another kind of processor.
    OTHER_PROCESSOR = "CD0809";
    /// Only a price of the size is known.
    UNDOCUMENTED = "CD0812";
    SIZE_RETIRES = "CD0813";
    /// The new GPU is from another vendor.
    OTHER_MAKER = "CD0814";
    /// The quota of the new size starts at zero.
    QUOTA = "CD0820";
    /// Low-priority nodes are retired.
    NO_LOW_PRIORITY = "CD0821";
    NO_SUCH_SIZE = "CD0822";
    /// A client library, command or option is retired or renamed.
    OLD_INTERFACE = "CD0823";
    /// A machine image reference is incomplete.
    IMAGE_CUT_OFF = "CD0824";
    /// No size has this number of GPUs.
    NO_SUCH_COUNT = "CD0828";
    /// A part of a file that the translation does not have.
    NOT_TRANSLATED = "CD0830";
}
