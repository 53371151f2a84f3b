//! One request to a registry's API, signed in where it wants that.

use cudock_base::Secret;
use cudock_http::{Client, HttpError, Method, Request, Response, redact, url::is_loopback};

use crate::auth::{Authorization, Authorizations};
use crate::challenge;
use crate::credentials::Credentials;
use crate::error::{Error, Resource};
use crate::mirrors::Source;
use crate::reference::host_of;

/// The HTTP client and the authorizations of one registry client.
pub(crate) struct Session {
    http: Client,
    authorizations: Authorizations,
}

impl Session {
    pub(crate) fn new(http: Client, credentials: Credentials) -> Self {
        Self { http, authorizations: Authorizations::new(credentials) }
    }

    /// Gets `/v2/<repository>/<path>`. The response is 200, 206, or 416 where a range was requested.
    pub(crate) fn get(
        &self,
        source: &Source,
        path: &str,
        accept: Option<&str>,
        from_byte: Option<u64>,
        resource: &Resource,
    ) -> Result<Response, Error> {
        let mut request = Request::get(url(source, path)).range_from(from_byte);
        if let Some(accept) = accept {
            request = request.accept(accept);
        }
        let accepted: &[u16] = if from_byte.is_some() { &[200, 206, 416] } else { &[200, 206] };
        self.send(source, request, accepted, resource)
    }

    /// Requests the headers of `/v2/<repository>/<path>`, which must exist.
    pub(crate) fn head(
        &self,
        source: &Source,
        path: &str,
        accept: &str,
        resource: &Resource,
    ) -> Result<Response, Error> {
        self.send(source, Request::new(Method::HEAD, url(source, path)).accept(accept), &[200], resource)
    }

    /// Whether `/v2/<repository>/<path>` exists.
    pub(crate) fn exists(&self, source: &Source, path: &str, resource: &Resource) -> Result<bool, Error> {
        let request = Request::new(Method::HEAD, url(source, path));
        match self.send(source, request, &[200], resource) {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. } | Error::NameUnknown { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Posts nothing to `/v2/<repository>/<path>`, which begins an upload.
    pub(crate) fn post(&self, source: &Source, path: &str, resource: &Resource) -> Result<Response, Error> {
        let request = Request::new(Method::POST, url(source, path)).body("application/octet-stream", []);
        self.send(source, request, &[201, 202], resource)
    }

    /// Puts a document at `/v2/<repository>/<path>`.
    pub(crate) fn put(
        &self,
        source: &Source,
        path: &str,
        media_type: &str,
        bytes: &[u8],
        resource: &Resource,
    ) -> Result<Response, Error> {
        let request = Request::new(Method::PUT, url(source, path)).body(media_type, bytes);
        self.send(source, request, &[200, 201, 202], resource)
    }

    pub(crate) fn http(&self) -> &Client {
        &self.http
    }

    /// The authorization for the next request to a repository, renewed if it has expired or if the registry refused it.
    pub(crate) fn authorization(
        &self,
        source: &Source,
        refused: bool,
        resource: &Resource,
    ) -> Result<Option<Secret>, Error> {
        let cached = self.authorizations.cached(source).filter(|_| !refused);
        let authorization = match (cached, self.authorizations.known_challenge(source)) {
            (Some(cached), _) => Some(cached),
            (None, Some(challenge)) => {
                Some(self.authorizations.answer(&self.http, source, &challenge, resource)?)
            }
            (None, None) => None,
        };
        Ok(authorization.and_then(|authorization| authorization.header))
    }

    fn send(
        &self,
        source: &Source,
        mut request: Request,
        accepted: &[u16],
        resource: &Resource,
    ) -> Result<Response, Error> {
        let mut authorization = self.authorizations.cached(source);
        let mut renewed = false;
        loop {
            let header = authorization.as_ref().and_then(|authorization| authorization.header.clone());
            request = request.authorization(header);
            let response = self.http.send(&request).map_err(|error| Error::http(resource, error))?;
            match response.status() {
                status if accepted.contains(&status) => return Ok(response),
                401 if response.is_from_origin() && !renewed => {
                    let Some(challenge) = challenge::best(response.headers("www-authenticate")) else {
                        return Err(refused(response, authorization.as_ref(), resource));
                    };
                    drop(response);
                    let fresh = self.authorizations.answer(&self.http, source, &challenge, resource)?;
                    if fresh.header.is_none() {
                        return Err(unauthorized(Some(&fresh), resource));
                    }
                    authorization = Some(fresh);
                    renewed = true;
                }
                _ => return Err(refused(response, authorization.as_ref(), resource)),
            }
        }
    }
}

fn url(source: &Source, path: &str) -> String {
    format!("{}/v2/{}/{path}", base_url(&source.registry), source.repository)
}

/// Plain http for this machine, unless the port says otherwise; https for all others.
fn base_url(registry: &str) -> String {
    let host = host_of(registry);
    let scheme = if is_loopback(host) && !host.ends_with(":443") { "http" } else { "https" };
    format!("{scheme}://{host}")
}

fn unauthorized(authorization: Option<&Authorization>, resource: &Resource) -> Error {
    Error::Unauthorized {
        resource: Box::new(resource.clone()),
        signed_in: authorization.is_some_and(|auth| auth.signed_in && auth.header.is_some()),
        problem: authorization.and_then(|auth| auth.problem.clone()),
    }
}

fn refused(mut response: Response, authorization: Option<&Authorization>, resource: &Resource) -> Error {
    let (status, error) = (response.status(), response.error_message());
    let secrets = authorization.map_or(&[][..], |authorization| &authorization.secrets);
    let message = error.message.map(|message| redact(&message, secrets));
    let resource_box = Box::new(resource.clone());
    match status {
        401 => unauthorized(authorization, resource),
        403 => Error::Forbidden { resource: resource_box, message },
        404 if error.code.as_deref() == Some("NAME_UNKNOWN") => Error::NameUnknown { resource: resource_box },
        404 => Error::NotFound { resource: resource_box, message },
        status => {
            Error::http(resource, HttpError::status(status, message.as_deref(), response.retry_after()))
        }
    }
}
