//! A service principal with a secret or a certificate.

use cudock_base::Secret;

use super::SignInError;
use super::certificate::ClientCertificate;
use super::token::AccessToken;
use super::token_endpoint::TokenRequest;
use crate::cloud::Audience;

pub(super) const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// The client assertion is not within its valid time range.
const ASSERTION_TIME: u32 = 700_024;

/// An application in a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Application {
    pub(super) tenant: String,
    pub(super) client_id: String,
}

impl Application {
    pub(super) fn token_by_secret(
        &self,
        request: &TokenRequest<'_>,
        audience: &Audience,
        secret: &Secret,
    ) -> Result<AccessToken, SignInError> {
        const METHOD: &str = "a client secret";
        let scope = audience.scope();
        let fields = [
            ("client_id", self.client_id.as_str()),
            ("client_secret", secret.expose().as_str()),
            ("grant_type", "client_credentials"),
            ("scope", scope.as_str()),
        ];
        request.post(METHOD, &self.tenant, &fields, &[secret])?.token(METHOD, request.clock)
    }

    pub(super) fn token_by_certificate(
        &self,
        request: &TokenRequest<'_>,
        audience: &Audience,
        certificate: &ClientCertificate,
    ) -> Result<AccessToken, SignInError> {
        const METHOD: &str = "a certificate";
        let sign_in = || {
            let assertion = certificate.assertion(
                &self.client_id,
                &request.endpoint(&self.tenant),
                request.clock.now(),
            )?;
            self.token_by_assertion(METHOD, request, audience, &assertion)
        };
        match sign_in() {
            // The response carries the server's time; sign again with it.
            Err(error) if error.number() == Some(ASSERTION_TIME) => sign_in(),
            result => result,
        }
    }

    pub(super) fn token_by_assertion(
        &self,
        method: &'static str,
        request: &TokenRequest<'_>,
        audience: &Audience,
        assertion: &Secret,
    ) -> Result<AccessToken, SignInError> {
        let scope = audience.scope();
        let fields = [
            ("client_id", self.client_id.as_str()),
            ("client_assertion", assertion.expose().as_str()),
            ("client_assertion_type", ASSERTION_TYPE),
            ("grant_type", "client_credentials"),
            ("scope", scope.as_str()),
        ];
        request.post(method, &self.tenant, &fields, &[assertion])?.token(method, request.clock)
    }
}
