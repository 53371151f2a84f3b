//! One page of the price list.

use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The service sends up to a thousand rows per page; ten times as many are an error.
const MAX_ROWS: usize = 10_000;

#[derive(Debug, Deserialize)]
pub(crate) struct Page<'a> {
    /// The currency of all rows.
    #[serde(rename = "BillingCurrency", default)]
    pub(crate) currency: Option<String>,
    #[serde(rename = "Items", borrow)]
    rows: Rows<'a>,
    #[serde(rename = "NextPageLink", default)]
    pub(crate) next: Option<String>,
}

impl<'a> Page<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    pub(crate) fn rows(&self) -> &[PriceListRow<'a>] {
        &self.rows.0
    }
}

/// A row with the fields that the rules need. All of them may be missing or null.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PriceListRow<'a> {
    pub(crate) currency_code: Option<String>,
    #[serde(borrow)]
    pub(crate) tier_minimum_units: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) retail_price: Option<&'a RawValue>,
    pub(crate) arm_region_name: Option<String>,
    pub(crate) effective_start_date: Option<String>,
    pub(crate) effective_end_date: Option<String>,
    pub(crate) meter_name: Option<String>,
    pub(crate) product_name: Option<String>,
    pub(crate) sku_name: Option<String>,
    pub(crate) service_name: Option<String>,
    pub(crate) unit_of_measure: Option<String>,
    pub(crate) reservation_term: Option<String>,
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) is_primary_meter_region: Option<bool>,
    pub(crate) arm_sku_name: Option<String>,
}

/// The text of a field, or an empty one.
pub(crate) fn text(field: Option<&String>) -> &str {
    field.map_or("", String::as_str)
}

/// A limited number of rows: a page of empty ones would take a hundred times its size in memory.
#[derive(Debug)]
struct Rows<'a>(Vec<PriceListRow<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Rows<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bounded;
        impl<'de> Visitor<'de> for Bounded {
            type Value = Rows<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of prices")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut rows = Vec::new();
                while let Some(row) = list.next_element()? {
                    if rows.len() == MAX_ROWS {
                        return Err(A::Error::custom(format!("more than {MAX_ROWS} rows on one page")));
                    }
                    rows.push(row);
                }
                Ok(Rows(rows))
            }
        }
        deserializer.deserialize_seq(Bounded)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_is_read_with_its_rows_and_the_next_link() {
        let text = r#"{"BillingCurrency":"USD","CustomerEntityId":"Default","Items":[{"retailPrice":6.58E-1,"armSkuName":"Standard_NC4as_T4_v3","availabilityId":null,"isPrimaryMeterRegion":true,"type":"Consumption","savingsPlan":[{"term":"1 Year","unitPrice":0.4819192}]},{"productName":"A \"quoted\" \u00e9"}],"NextPageLink":"https://x/y?$skip=1000","Count":2}"#;
        let page = Page::parse(text.as_bytes()).unwrap();
        assert_eq!(page.rows().len(), 2);
        assert_eq!(page.rows()[0].retail_price.unwrap().get(), "6.58E-1");
        assert_eq!(page.rows()[1].product_name.as_deref(), Some("A \"quoted\" é"));
        assert_eq!(page.next.as_deref(), Some("https://x/y?$skip=1000"));
        let last = Page::parse(br#"{"Items":[],"NextPageLink":null}"#).unwrap();
        assert!(last.next.is_none() && last.rows().is_empty());
    }

    #[test]
    fn invalid_pages_are_rejected() {
        for text in [
            "",
            "{",
            "[]",
            "{}",
            "<html>",
            r#"{"Items":null}"#,
            r#"{"Items":[1]}"#,
            r#"{"Items":[]} x"#,
            r#"{"error":"x"}"#,
        ] {
            assert!(Page::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_page_with_too_many_rows_is_rejected() {
        let rows = vec!["{}"; MAX_ROWS].join(",");
        assert!(Page::parse(format!("{{\"Items\":[{rows}]}}").as_bytes()).is_ok());
        let error = Page::parse(format!("{{\"Items\":[{rows},{{}}]}}").as_bytes()).unwrap_err();
        assert!(error.to_string().contains("more than 10000 rows"), "{error}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Page::parse(&bytes);
        }
    }
}
