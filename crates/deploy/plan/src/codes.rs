//! The codes of findings and rejections. A code is never given another meaning.

cudock_facts::codes! {
    SIZE_RETIRED = "CD0801";
    GRID_DRIVER = "CD0802";
    SERVICE_WITHOUT_GPUS = "CD0803";
    GPU_MEMORY = "CD0804";
    /// The GPU's compute capability is outside what the program runs on.
    CAPABILITY = "CD0805";
    GPU_COUNT = "CD0806";
    INTERCONNECT = "CD0807";
    /// Too few processors, or too little memory or disk.
    MACHINE_TOO_SMALL = "CD0808";
    /// The image is built for another processor.
    ARCHITECTURE = "CD0809";
    /// The image does not run there, according to `check`.
    IMAGE_DOES_NOT_RUN = "CD0810";
    NO_PRICE = "CD0811";
    UNDOCUMENTED_SIZE = "CD0812";
    ENDS_TOO_SOON = "CD0813";
    NOT_NVIDIA = "CD0814";
    SERVICE_LIMIT = "CD0815";
    SIZE_NOT_OFFERED = "CD0816";
    /// Excluded by a constraint of the workload.
    NOT_WANTED = "CD0817";
    OTHER_KIND_OF_WORK = "CD0818";
    /// The driver that the service installs does not match.
    DRIVER = "CD0819";
    /// Quota has to be requested.
    QUOTA = "CD0820";
    /// Spot is not offered, or costs the same.
    SPOT_SAVES_NOTHING = "CD0821";
    /// No source lists the size for the service in the region.
    NOT_LISTED = "CD0825";
    RESTRICTED_REGION = "CD0826";
    /// The region does not have the size, or is not a public one.
    NOT_IN_REGION = "CD0827";
    /// The service does not install a driver on the size.
    OWN_DRIVER = "CD0829";
    /// The GPU does not calculate in the number format of the program.
    NUMBER_FORMAT = "CD0836";
    OVER_BUDGET = "CD0901";
    MISSES_DEADLINE = "CD0902";
    DATA_BOUND = "CD0903";
    OLD_PRICE = "CD0904";
    /// Evictions cost more than they save.
    EVICTIONS = "CD0905";
    /// The cold start is most of the cost.
    COLD_START = "CD0906";
    /// A part of the cost is from another region, or assumed.
    PRICED_FROM_ELSEWHERE = "CD0907";
    /// Its cost differs from others by less than the uncertainty.
    WITHIN_UNCERTAINTY = "CD0908";
}
