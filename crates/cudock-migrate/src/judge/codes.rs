//! The codes this crate can report. Each has a page that `cudock explain` prints.

cudock_facts::codes! {
    /// Machine code for the old GPU does not run on the new one.
    NO_CODE_FOR_GPU = "CD0501";
    /// The size has ended.
    SIZE_RETIRED = "CD0801";
    /// The new size takes the GRID driver.
    VGPU_DRIVER = "CD0802";
    /// The service has no GPUs any more.
    SERVICE_WITHOUT_GPU = "CD0803";
    /// The new size has fewer GPUs.
    FEWER_GPUS = "CD0806";
    /// The new size has no `InfiniBand`.
    NO_INTERCONNECT = "CD0807";
    /// The new size has fewer processors or less memory.
    SMALLER_MACHINE = "CD0808";
    /// The new size has another kind of processor.
    OTHER_PROCESSOR = "CD0809";
    /// Of the size only a price is known.
    UNDOCUMENTED = "CD0812";
    /// The size will end.
    SIZE_RETIRES = "CD0813";
    /// The new GPU is not NVIDIA's, or the old one was not.
    OTHER_MAKER = "CD0814";
    /// The quota of the new size starts at zero.
    QUOTA = "CD0820";
    /// Low-priority nodes have ended.
    NO_LOW_PRIORITY = "CD0821";
    /// No size has this name.
    NO_SUCH_SIZE = "CD0822";
    /// A client library, command or option has ended or has another name.
    OLD_INTERFACE = "CD0823";
    /// A machine image is not named in full.
    IMAGE_CUT_OFF = "CD0824";
    /// No size has this number of GPUs.
    NO_SUCH_COUNT = "CD0828";
}
