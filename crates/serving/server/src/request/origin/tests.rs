use cudock_testkit::random::{Random, cases, seed};

use super::*;

const HERE: &str = "127.0.0.1:8000";

fn page<'a>(host: &'a str, origin: Option<&'a str>, site: Option<&'a str>) -> PageHeaders<'a> {
    PageHeaders { host: Some(host), origin, site }
}

fn listener(reach: Reach, allowed: &[String]) -> Listener<'_> {
    Listener { reach, has_tls: false, allowed }
}

#[test]
fn on_a_loopback_address_only_its_names_and_those_that_are_allowed_are_answered() {
    let allowed = ["models.example".to_owned(), "10.0.0.5".to_owned(), "[fe80::1]".to_owned()];
    for host in [
        "localhost",
        "LOCALHOST.:9000",
        "127.0.0.1",
        "[::1]:8000",
        "models.example",
        "Models.Example.:443",
        "10.0.0.5:80",
        "[fe80::1]:80",
    ] {
        assert_eq!(listener(Reach::Loopback, &allowed).check_host(Some(host)), Ok(()), "{host}");
    }
    for (host, name) in [
        ("evil.test", "evil.test"),
        ("evil.test:8000", "evil.test"),
        ("sub.models.example", "sub.models.example"),
        ("models.example.evil.test", "models.example.evil.test"),
        ("10.0.0.6", "10.0.0.6"),
        ("0.0.0.0:8000", "0.0.0.0"),
        ("", "NAME"),
        ("localhost@evil.test", "NAME"),
        ("$(reboot)", "NAME"),
    ] {
        let rejection = listener(Reach::Loopback, &allowed).check_host(Some(host)).unwrap_err();
        assert_eq!(rejection.status(), 403, "{host}");
        let hint = format!("start the server with `--allow-host {name}`");
        assert!(rejection.to_string().ends_with(&hint), "{rejection}");
        assert_eq!(listener(Reach::Network, &allowed).check_host(Some(host)), Ok(()), "{host}");
    }
    assert_eq!(listener(Reach::Loopback, &[]).check_host(None), Ok(()), "a browser names its host");
}

#[test]
fn a_page_of_another_origin_is_foreign_and_everybody_else_is_not() {
    use Sender::{Foreign, Own, Unconfirmed};
    let same = Some("same-origin");
    for (host, origin, site, expected) in [
        (HERE, None, None, Own),
        (HERE, Some("http://127.0.0.1:8000"), same, Own),
        (HERE, Some("http://127.0.0.1:8000"), None, Own),
        (HERE, None, same, Own),
        (HERE, None, Some("none"), Own),
        // Forwarded ports: both headers have that of the browser.
        ("localhost:9000", Some("http://localhost:9000"), same, Own),
        ("localhost", Some("http://localhost"), same, Own),
        ("localhost:80", Some("http://localhost"), None, Own),
        ("[::1]:8000", Some("http://[::1]:8000"), None, Own),
        // Another server of the same machine is the same site, and another origin.
        (HERE, Some("http://127.0.0.1:3000"), Some("same-site"), Foreign),
        (HERE, None, Some("same-site"), Foreign),
        (HERE, Some("http://127.0.0.1:3000"), None, Foreign),
        ("localhost:443", Some("http://localhost"), None, Foreign),
        (HERE, Some("http://localhost:8000"), None, Foreign),
        (HERE, Some("https://evil.test"), Some("cross-site"), Foreign),
        (HERE, None, Some("cross-site"), Foreign),
        (HERE, Some("http://127.0.0.1:8000"), Some("cross-site"), Foreign),
        (HERE, Some("https://evil.test"), None, Foreign),
        // Sandboxed frames, files, and what is not an origin.
        (HERE, Some("null"), None, Foreign),
        (HERE, Some("null"), Some("cross-site"), Foreign),
        (HERE, Some(""), None, Foreign),
        (HERE, Some(HERE), None, Foreign),
        (HERE, Some("http://127.0.0.1:8000@evil.test"), None, Foreign),
        (HERE, Some("http://127.0.0.1:8000.evil.test"), None, Foreign),
        (HERE, Some("http://evil.test/http://127.0.0.1:8000"), None, Foreign),
        (HERE, None, Some(""), Foreign),
        (HERE, None, Some("Same-Origin"), Foreign),
        (HERE, None, Some("same-origin, cross-site"), Foreign),
        // A proxy that changes Host, if the browser says that the page is the server's own.
        (HERE, Some("https://models.example"), same, Unconfirmed),
        (HERE, Some("null"), same, Unconfirmed),
        // Named by --allow-host.
        (HERE, Some("https://app.example"), Some("cross-site"), Own),
        (HERE, Some("http://App.Example:3000"), None, Own),
        (HERE, Some("https://sub.app.example"), Some("cross-site"), Foreign),
        (HERE, Some("https://app.example.evil.test"), None, Foreign),
    ] {
        let sender = page(host, origin, site).sender(listener(Reach::Loopback, &["app.example".to_owned()]));
        assert_eq!(sender, expected, "{host} {origin:?} {site:?}");
    }
    let nameless = PageHeaders { host: None, origin: Some("http://evil.test"), site: None };
    assert_eq!(nameless.sender(listener(Reach::Loopback, &[])), Foreign);
}

#[test]
fn on_a_network_a_name_that_its_page_could_have_rebound_is_foreign() {
    use Sender::{Foreign, Own};
    for (host, origin, site, expected) in [
        ("10.0.0.5:8000", "http://10.0.0.5:8000", None, Own),
        ("[2001:db8::1]:8000", "http://[2001:db8::1]:8000", None, Own),
        ("localhost:8000", "http://localhost:8000", None, Own),
        ("app.example:8000", "http://app.example:8000", None, Own),
        // A proxy with TLS before the server.
        ("models.example", "https://models.example", Some("same-origin"), Own),
        ("evil.test:8000", "https://evil.test:8000", None, Foreign),
        ("evil.test:8000", "http://evil.test:8000", None, Foreign),
        ("evil.test:8000", "http://evil.test:8000", Some("same-origin"), Foreign),
        ("evil.test.", "http://evil.test.", None, Foreign),
        ("10.0.0.5.evil.test", "http://10.0.0.5.evil.test", None, Foreign),
    ] {
        let allowed = ["app.example".to_owned()];
        let sender = page(host, Some(origin), site).sender(listener(Reach::Network, &allowed));
        assert_eq!(sender, expected, "{host} {origin} {site:?}");
    }
    let tls = Listener { has_tls: true, ..listener(Reach::Network, &[]) };
    let sender = |origin| page("models.example:8443", Some(origin), None).sender(tls);
    assert_eq!(sender("https://models.example:8443"), Own, "it has the certificate");
    assert_eq!(sender("http://models.example:8443"), Foreign);
}

#[test]
fn contradicting_headers_are_foreign() {
    for name in ["origin", "sec-fetch-site"] {
        let mut headers = HeaderMap::new();
        for value in ["http://127.0.0.1:8000", "same-origin"] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let sender = PageHeaders::new(Some(HERE), &headers).sender(listener(Reach::Loopback, &[]));
        assert_eq!(sender, Sender::Foreign, "{name}");
        let unreadable = HeaderMap::from_iter([(
            HeaderName::from_static(name),
            HeaderValue::from_bytes(b"http://\xe4.test").unwrap(),
        )]);
        let sender = PageHeaders::new(Some(HERE), &unreadable).sender(listener(Reach::Loopback, &[]));
        assert_eq!(sender, Sender::Foreign, "{name}");
    }
}

#[test]
fn only_own_pages_change_what_is_served_and_foreign_ones_start_nothing_on_a_loopback_address() {
    use Effect::{Changes, None, Starts};
    use Sender::{Foreign, Own, Unconfirmed};
    let permitted = |reach| {
        let all = [Own, Unconfirmed, Foreign]
            .map(|sender| [None, Starts, Changes].map(|effect| sender.may(effect, reach)));
        all.map(|row| row.map(u8::from))
    };
    assert_eq!(permitted(Reach::Loopback), [[1, 1, 1], [1, 1, 0], [1, 0, 0]]);
    assert_eq!(permitted(Reach::Network), [[1, 1, 1], [1, 1, 0], [1, 1, 0]]);
}

/// A page, a server and what a browser sends from one to the other: the test knows who they are, the rule does not.
#[derive(Debug)]
struct Scene {
    /// Scheme, name and port in the URL of the page.
    page: (&'static str, &'static str, u16),
    /// The same of the URL that it requests.
    target: (&'static str, &'static str, u16),
    sends_site: bool,
    reach: Reach,
    /// Whether the TLS of the target is that of a proxy.
    is_proxied: bool,
}

const SCHEMES: [&str; 2] = ["http", "https"];
/// Names that mean the server, wherever they are resolved.
const FIXED: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
/// Names that the attacker owns, and may have pointed at the server.
const HOSTILE: [&str; 5] = [
    "evil.test",
    "localhost.evil.test",
    "127.0.0.1.evil.test",
    "xn--lcalhost-55a.test",
    "own.example.evil.test",
];
/// The name of the server, by `--allow-host`.
const NAMED: &str = "own.example";

impl Scene {
    fn random(random: &mut Random) -> Self {
        let name = |random: &mut Random| match random.below(3) {
            0 => *random.pick(&FIXED),
            1 => NAMED,
            _ => *random.pick(&HOSTILE),
        };
        let mut url = || {
            let port = *random.pick(&[80, 443, 3000, 8000]);
            (*random.pick(&SCHEMES), name(random), port)
        };
        let (page, target) = (url(), url());
        let target = if random.one_in(3) { page } else { target };
        let reach = *random.pick(&[Reach::Loopback, Reach::Network]);
        Self { page, target, sends_site: random.one_in(2), reach, is_proxied: random.one_in(2) }
    }

    /// A URL without path as browsers write it.
    fn host((scheme, name, port): (&str, &str, u16)) -> String {
        let is_default = matches!((scheme, port), ("http", 80) | ("https", 443));
        if is_default { name.to_owned() } else { format!("{name}:{port}") }
    }

    /// Whether the page belongs to the operator of the server: it is from the same place, or from a
    /// named one, and its name is not the attacker's.
    fn is_ours(&self) -> bool {
        !HOSTILE.contains(&self.page.1) && (self.page == self.target || self.page.1 == NAMED)
    }

    fn listener<'a>(&self, allowed: &'a [String]) -> Listener<'a> {
        Listener { has_tls: self.target.0 == "https" && !self.is_proxied, ..listener(self.reach, allowed) }
    }

    /// Whether headers do not suffice: without `Sec-Fetch-Site`, a server without TLS does not know
    /// if a proxy has it.
    fn is_undecidable(&self) -> bool {
        let is_default = |(scheme, _, port)| default_port(scheme) == Some(port);
        let may_be_same = self.page.2 == self.target.2 || (is_default(self.page) && is_default(self.target));
        let differs_in_scheme = self.page.0 != self.target.0 && self.page.1 == self.target.1 && may_be_same;
        differs_in_scheme && !self.sends_site && !self.listener(&[]).has_tls
    }

    /// Whether the request may change something.
    fn is_accepted(&self) -> bool {
        let (host, origin) =
            (Self::host(self.target), format!("{}://{}", self.page.0, Self::host(self.page)));
        let site =
            match (self.page == self.target, self.page.0 == self.target.0, self.page.1 == self.target.1) {
                (true, ..) => "same-origin",
                (_, true, true) => "same-site",
                _ => "cross-site",
            };
        let allowed = [NAMED.to_owned()];
        let page = page(&host, Some(&origin), self.sends_site.then_some(site));
        let listener = self.listener(&allowed);
        listener.check_host(page.host).is_ok() && page.sender(listener).may(Effect::Changes, self.reach)
    }
}

#[test]
fn whatever_name_an_attacker_owns_its_pages_change_nothing_and_own_pages_do() {
    let mut random = Random::new(seed());
    let mut judged = 0;
    for _ in 0..cases(20_000) {
        let scene = Scene::random(&mut random);
        if scene.is_undecidable() {
            continue;
        }
        judged += 1;
        if scene.is_ours() && !HOSTILE.contains(&scene.target.1) {
            assert!(scene.is_accepted(), "refused: {scene:?}");
        } else if !scene.is_ours() {
            // Whose page came over HTTPS from where it sends its request has the certificate of the server.
            let has_certificate = scene.page == scene.target
                && scene.page.0 == "https"
                && scene.reach == Reach::Network
                && (scene.sends_site || !scene.is_proxied);
            assert_eq!(scene.is_accepted(), has_certificate, "{scene:?}");
        }
    }
    assert!(judged > cases(20_000) / 2, "{judged}");
}
