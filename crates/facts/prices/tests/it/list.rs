//! A server that speaks as the price service does: filters, pages of a thousand rows, links with blanks in them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use cudock_facts::Facts;
use cudock_http::RetryPolicy;
use cudock_prices::{
    Connection, Listener, PricesError, RefreshReport, RefreshRequest, RegionPrices, refresh,
};

use cudock_testkit::http::{Reply, Request, Server};

pub(crate) const PAGE: usize = 1000;

pub(crate) const QUICK: RetryPolicy = RetryPolicy {
    max_retries: 3,
    initial_delay: Duration::from_millis(2),
    max_delay: Duration::from_millis(20),
};

/// A row of the list. The fields that differ are set by [`Row::with`].
#[derive(Debug, Clone)]
pub(crate) struct Row(BTreeMap<&'static str, String>);

impl Row {
    /// The price of a Linux machine by the hour, from 2021 on.
    pub(crate) fn new(region: &str, size: &str, price: &str) -> Self {
        let sku = size.trim_start_matches("Standard_").replace('_', " ");
        let quoted = |text: &str| format!("\"{text}\"");
        Self(BTreeMap::from([
            ("currencyCode", quoted("USD")),
            ("tierMinimumUnits", "0.0".to_owned()),
            ("retailPrice", price.to_owned()),
            ("unitPrice", price.to_owned()),
            ("armRegionName", quoted(region)),
            ("location", quoted("EU West")),
            ("effectiveStartDate", quoted("2021-04-01T00:00:00Z")),
            ("meterId", quoted("cfd5e14f-6efd-5839-aac9-a94673bfdb8c")),
            ("meterName", quoted(&sku)),
            ("productId", quoted("DZH318Z0DF49")),
            ("availabilityId", "null".to_owned()),
            ("productName", quoted("Virtual Machines Some Series")),
            ("skuName", quoted(&sku)),
            ("serviceName", quoted("Virtual Machines")),
            ("serviceFamily", quoted("Compute")),
            ("unitOfMeasure", quoted("1 Hour")),
            ("type", quoted("Consumption")),
            ("isPrimaryMeterRegion", "true".to_owned()),
            ("armSkuName", quoted(size)),
        ]))
    }

    /// A meter of another service.
    pub(crate) fn meter(
        region: &str,
        service: &str,
        product: &str,
        name: &str,
        unit: &str,
        price: &str,
    ) -> Self {
        Self::new(region, "", price)
            .with("serviceName", service)
            .with("productName", product)
            .with("meterName", name)
            .with("unitOfMeasure", unit)
    }

    pub(crate) fn with(mut self, field: &'static str, text: &str) -> Self {
        self.0.insert(field, format!("\"{text}\""));
        self
    }

    pub(crate) fn raw(mut self, field: &'static str, value: &str) -> Self {
        self.0.insert(field, value.to_owned());
        self
    }

    pub(crate) fn spot(self) -> Self {
        let meter = self.0["meterName"].trim_matches('"').to_owned() + " Spot";
        self.with("meterName", &meter).with("skuName", &meter)
    }

    fn json(&self) -> String {
        let fields: Vec<String> = self.0.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    }

    fn is_machine(&self) -> bool {
        self.0["serviceName"] == "\"Virtual Machines\""
    }
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) filter: String,
    pub(crate) region: String,
    pub(crate) skip: usize,
    /// Whether virtual machines are requested, and not the meters of services.
    pub(crate) machines: bool,
}

impl Query {
    pub(crate) fn of(request: &Request) -> Self {
        assert_eq!(request.method, "GET");
        let (path, query) = request.path.split_once('?').expect("a query");
        assert_eq!(path, "/api/retail/prices");
        let parameter = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)).map(decoded);
        let filter = parameter("$filter=").expect("a filter, with its name as it is");
        let region = filter.split("armRegionName eq '").nth(1).expect("a region in the filter");
        Self {
            region: region.split('\'').next().unwrap().to_owned(),
            machines: filter.contains("serviceName eq 'Virtual Machines'"),
            skip: parameter("$skip=").map_or(0, |skip| skip.parse().unwrap()),
            filter,
        }
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// A page, with the link to the next written as the service writes it.
pub(crate) fn page(request: &Request, query: &Query, rows: &[Row]) -> Reply {
    let (from, to) = (query.skip.min(rows.len()), (query.skip + PAGE).min(rows.len()));
    let next = if to < rows.len() {
        let host = request.header("host").unwrap();
        format!("\"http://{host}/api/retail/prices?$filter={}&$skip={to}\"", query.filter)
    } else {
        "null".to_owned()
    };
    answer(&rows[from..to], &next)
}

/// A page with these rows and this link.
pub(crate) fn answer(rows: &[Row], next: &str) -> Reply {
    let items: Vec<String> = rows.iter().map(Row::json).collect();
    let body = format!(
        "{{\"BillingCurrency\":\"USD\",\"CustomerEntityId\":\"Default\",\"CustomerEntityType\":\"Retail\",\
         \"Items\":[{}],\"NextPageLink\":{next},\"Count\":{}}}",
        items.join(","),
        rows.len()
    );
    Reply::new(200, body).with("Content-Type", "application/json; charset=utf-8")
}

/// A service that has these rows.
pub(crate) fn service(rows: Vec<Row>) -> Server {
    Server::start(move |request| well(request, &rows))
}

/// The answer of a service that has these rows.
pub(crate) fn well(request: &Request, rows: &[Row]) -> Reply {
    let query = Query::of(request);
    let wanted = |row: &&Row| {
        row.0["armRegionName"] == format!("\"{}\"", query.region) && row.is_machine() == query.machines
    };
    let rows: Vec<Row> = rows.iter().filter(wanted).cloned().collect();
    page(request, &query, &rows)
}

/// The regions whose machines were requested, in order, each page on its own.
pub(crate) fn requested_regions(server: &Server) -> Vec<String> {
    let questions =
        server.requests().iter().map(Query::of).filter(|query| query.machines).collect::<Vec<_>>();
    questions
        .into_iter()
        .map(|query| match query.skip {
            0 => query.region,
            skip => format!("{}+{skip}", query.region),
        })
        .collect()
}

pub(crate) const TODAY: &str = "2026-11-15";

pub(crate) fn request(directory: &Path, server: &Server, regions: &[&str]) -> RefreshRequest {
    RefreshRequest {
        directory: directory.to_owned(),
        endpoint: format!("http://{}/api/retail/prices", server.host()).parse().unwrap(),
        regions: regions.iter().map(|region| (*region).to_owned()).collect(),
        sizes: Vec::new(),
        today: TODAY.parse().unwrap(),
        connection: Connection { retries: QUICK, timeout: Duration::from_millis(700), certificates: None },
    }
}

/// A run with the embedded tables and those of the directory.
pub(crate) fn run(request: &RefreshRequest) -> Result<RefreshReport, PricesError> {
    refresh(request, &facts(&request.directory), &())
}

/// The tables with the overlay of a directory.
pub(crate) fn facts(directory: &Path) -> Facts {
    if directory.exists() { Facts::with_overlay(directory).unwrap() } else { Facts::embedded() }
}

/// Price and Spot of a size in a region, each with its day.
pub(crate) fn price(directory: &Path, size: &str, region: &str) -> (String, String) {
    let facts = facts(directory);
    let row = facts.prices().of_size(size).find(|row| row.region == region).expect("a row");
    let shown = |usd: Option<cudock_base::Usd>, day: Option<cudock_facts::version::Date>| match (usd, day) {
        (Some(usd), Some(day)) => format!("{usd} {day}"),
        _ => "-".to_owned(),
    };
    (shown(row.price, row.price_date), shown(row.spot, row.spot_date))
}

/// The names of files in a directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Writes down what it hears.
#[derive(Default)]
pub(crate) struct Heard(pub(crate) Mutex<Vec<String>>);

impl Heard {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl Listener for Heard {
    fn waiting(&self) {
        self.note("waiting".to_owned());
    }

    fn resumed(&self, done: usize, of: usize) {
        self.note(format!("resumed {done} of {of}"));
    }

    fn done(&self, index: usize, of: usize, region: &RegionPrices) {
        self.note(format!("{index} of {of}: {}, {} sizes", region.region, region.sizes.len()));
    }

    fn retrying(&self, reason: &str, _: Duration) {
        self.note(reason.to_owned());
    }
}
