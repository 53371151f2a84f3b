//! The codes of findings and rejections. A code is never given another meaning.

cudock_facts::codes! {
    /// Azure has ended the size.
    SIZE_RETIRED = "CD0801";
    /// The size takes Azure's GRID driver.
    GRID_DRIVER = "CD0802";
    /// The service has no GPUs.
    SERVICE_WITHOUT_GPUS = "CD0803";
    /// The GPU has too little memory.
    GPU_MEMORY = "CD0804";
    /// The GPU's compute capability is outside what the program runs on.
    CAPABILITY = "CD0805";
    /// An instance has too few GPUs.
    GPU_COUNT = "CD0806";
    /// `NVLink` or `InfiniBand` is missing.
    INTERCONNECT = "CD0807";
    /// Too few processors, or too little memory or disk.
    MACHINE_TOO_SMALL = "CD0808";
    /// The processor is another one than the image is made for.
    ARCHITECTURE = "CD0809";
    /// The image does not run there, by `check`'s verdict.
    IMAGE_DOES_NOT_RUN = "CD0810";
    /// No price is known in the regions allowed.
    NO_PRICE = "CD0811";
    /// Only a price was seen of the size.
    UNDOCUMENTED_SIZE = "CD0812";
    /// The size ends before the work, or soon.
    ENDS_TOO_SOON = "CD0813";
    /// The GPU is not NVIDIA's.
    NOT_NVIDIA = "CD0814";
    /// A limit of the service.
    SERVICE_LIMIT = "CD0815";
    /// The service does not offer the size.
    SIZE_NOT_OFFERED = "CD0816";
    /// Its owner does not want it.
    NOT_WANTED = "CD0817";
    /// The service is not for this kind of work.
    OTHER_KIND_OF_WORK = "CD0818";
    /// The driver that the service installs does not fit.
    DRIVER = "CD0819";
    /// Quota has to be asked for.
    QUOTA = "CD0820";
    /// Spot is not offered, or costs the same.
    SPOT_SAVES_NOTHING = "CD0821";
    /// No source says that the service takes the size there.
    NOT_LISTED = "CD0825";
    /// The region gives access on request.
    RESTRICTED_REGION = "CD0826";
    /// The region does not have the size, or is not a public one.
    NOT_IN_REGION = "CD0827";
    /// The service installs no driver on the size.
    OWN_DRIVER = "CD0829";
    /// It costs more than allowed.
    OVER_BUDGET = "CD0901";
    /// It takes longer than allowed.
    MISSES_DEADLINE = "CD0902";
    /// The GPU waits for data.
    DATA_BOUND = "CD0903";
    /// The price is old.
    OLD_PRICE = "CD0904";
    /// Evictions cost more than they save.
    EVICTIONS = "CD0905";
    /// The cold start is most of the cost.
    COLD_START = "CD0906";
    /// A part is priced from another region, or assumed.
    PRICED_FROM_ELSEWHERE = "CD0907";
    /// Its cost differs from others by less than what is assumed.
    WITHIN_UNCERTAINTY = "CD0908";
}
