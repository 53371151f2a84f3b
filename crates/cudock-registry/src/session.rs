//! One request to a registry's API: signed in where it wants that, and its refusals told apart.

use std::io::Read;

use serde::Deserialize;
use ureq::Body;
use ureq::http::Response;

use crate::auth::{Pass, Passes, failure};
use crate::challenge;
use crate::credentials::Credentials;
use crate::error::{Asked, RegistryError};
use crate::http::{Answer, Get, Http, header};
use crate::mirrors::Place;
use crate::reference::{host_of, is_loopback};
use crate::retry::{Again, Failure, retry_after};
use crate::text::shortened;

const LARGEST_REFUSAL: u64 = 64 * 1024;

/// The network and the passes of one client.
pub(crate) struct Session {
    http: Http,
    passes: Passes,
}

#[derive(Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    errors: Vec<RefusalError>,
}

#[derive(Default, Deserialize)]
struct RefusalError {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

impl Session {
    pub(crate) fn new(http: Http, credentials: Credentials) -> Self {
        Self { http, passes: Passes::new(credentials) }
    }

    /// Gets `/v2/<repository>/<below>`. An answer is 200, 206, or 416 where a part was asked for.
    pub(crate) fn get(
        &self,
        place: &Place,
        below: &str,
        accept: Option<&str>,
        from_byte: Option<u64>,
        asked: &Asked,
    ) -> Result<Response<Body>, Failure> {
        let url = format!("{}/v2/{}/{below}", base(&place.registry), place.repository);
        let mut pass = self.passes.held(place);
        let mut renewed = false;
        loop {
            let authorization = pass.as_ref().and_then(|pass| pass.header.as_ref());
            let Answer { response: answer, is_of_origin, .. } = self
                .http
                .get(&url, &Get { authorization, accept, from_byte })
                .map_err(|trouble| failure(trouble, asked))?;
            match answer.status().as_u16() {
                200 | 206 => return Ok(answer),
                416 if from_byte.is_some() => return Ok(answer),
                401 if is_of_origin && !renewed => {
                    let headers = answer.headers().get_all("www-authenticate").iter();
                    let Some(challenge) = challenge::best(headers.filter_map(|value| value.to_str().ok()))
                    else {
                        return Err(refused(answer, pass.as_ref(), asked));
                    };
                    drop(answer);
                    let fresh = self.passes.answer(&self.http, place, &challenge, asked)?;
                    if fresh.header.is_none() {
                        return Err(unauthorized(Some(&fresh), asked).into());
                    }
                    pass = Some(fresh);
                    renewed = true;
                }
                _ => return Err(refused(answer, pass.as_ref(), asked)),
            }
        }
    }
}

/// Plain http for this machine, unless the port says otherwise; https for all others.
fn base(registry: &str) -> String {
    let host = host_of(registry);
    let scheme = if is_loopback(host) && !host.ends_with(":443") { "http" } else { "https" };
    format!("{scheme}://{host}")
}

fn unauthorized(pass: Option<&Pass>, asked: &Asked) -> RegistryError {
    RegistryError::Unauthorized {
        asked: Box::new(asked.clone()),
        signed_in: pass.is_some_and(|pass| pass.signed_in && pass.header.is_some()),
        trouble: pass.and_then(|pass| pass.trouble.clone()),
    }
}

/// Reads a refusal's reason, which is the registry's word and only shown.
fn refused(mut answer: Response<Body>, pass: Option<&Pass>, asked: &Asked) -> Failure {
    let status = answer.status().as_u16();
    let after = retry_after(header(&answer, "retry-after"));
    let mut body = Vec::new();
    // A reason that cannot be read is as good as none.
    let _ = answer.body_mut().as_reader().take(LARGEST_REFUSAL).read_to_end(&mut body);
    let refusal: Refusal = serde_json::from_slice(&body).unwrap_or_default();
    let first = refusal.errors.into_iter().next().unwrap_or_default();
    let said = Some(first.message)
        .filter(|message| !message.trim().is_empty())
        .map(|message| pass.map_or(message.clone(), |pass| pass.redacted(&message)))
        .map(|message| shortened(&message, 200));
    let asked_box = Box::new(asked.clone());
    let (error, again) = match status {
        401 => (unauthorized(pass, asked), Again::Never),
        403 => (RegistryError::Forbidden { asked: asked_box, said }, Again::Never),
        404 if first.code == "NAME_UNKNOWN" => {
            (RegistryError::NameUnknown { asked: asked_box }, Again::Never)
        }
        404 => (RegistryError::NotFound { asked: asked_box, said }, Again::Never),
        429 => (RegistryError::TooManyRequests { asked: asked_box, retry_after: after }, Again::After(after)),
        408 | 500 | 502..=504 => {
            (RegistryError::Status { asked: asked_box, status, said }, Again::After(after))
        }
        _ => (RegistryError::Status { asked: asked_box, status, said }, Again::Never),
    };
    Failure { error, again }
}
