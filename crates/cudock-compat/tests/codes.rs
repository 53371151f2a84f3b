//! Finding codes and their pages belong together.

use cudock_compat::codes;
use cudock_facts::Facts;
use cudock_host::checks;

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let facts = Facts::embedded();
    for code in codes::ALL {
        assert!(facts.findings().get(code).is_some(), "{code} has no page");
    }
    for page in &facts.findings().finding {
        let code = page.code.as_str();
        let is_reported = codes::ALL.contains(&code) || checks::codes::ALL.contains(&code);
        assert!(is_reported, "{code} is reported by nothing");
    }
}
