//! Any bytes as a page of the price list: no panic; what is read is of the region and the requested sizes,
//! above zero, and reads the same again.
#![no_main]

use cudock_prices::read_page;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let sizes = ["Standard_NC4as_T4_v3", "Standard_ND96isr_H200_v5"].map(str::to_owned);
    let today = "2026-11-15".parse().expect("a day");
    let Ok((read, goes_on)) = read_page(bytes, "westeurope", &sizes, today) else { return };
    assert_eq!(read.region, "westeurope");
    for row in &read.sizes {
        assert!(sizes.contains(&row.size));
        assert!(row.price.is_some() || row.spot.is_some());
        assert!([row.price, row.spot].into_iter().flatten().all(|micros| (1..1_000_000_000_000_000).contains(&micros)));
    }
    assert!(read.meters.iter().all(|meter| meter.nanos > 0));
    assert_eq!(read_page(bytes, "westeurope", &sizes, today), Ok((read, goes_on)));
});
