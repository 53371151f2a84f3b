//! The ways to sign in, ready to be used.

use cudock_base::Secret;

use super::azure_cli::AzureCli;
use super::certificate::ClientCertificate;
use super::device_code::DeviceCode;
use super::error::SignInError;
use super::managed_identity::ManagedIdentity;
use super::service_principal::Application;
use super::token::AccessToken;
use super::token_endpoint::TokenRequest;
use super::workload_identity::TokenIssuer;
use crate::cloud::Audience;

#[derive(Debug)]
pub(super) enum Flow {
    AzureCli(AzureCli),
    Secret(Application, Secret),
    Certificate(Application, ClientCertificate),
    Federation(Application, TokenIssuer),
    ManagedIdentity(ManagedIdentity),
    DeviceCode(DeviceCode),
}

impl Flow {
    /// `has_worked`: whether it gave a token before.
    pub(super) fn token(
        &self,
        request: &TokenRequest<'_>,
        audience: &Audience,
        has_worked: bool,
    ) -> Result<AccessToken, SignInError> {
        match self {
            Self::AzureCli(cli) => cli.token(audience, request.clock),
            Self::Secret(application, secret) => application.token_by_secret(request, audience, secret),
            Self::Certificate(application, certificate) => {
                application.token_by_certificate(request, audience, certificate)
            }
            Self::Federation(application, issuer) => issuer.token(application, request, audience),
            Self::ManagedIdentity(identity) => identity.token(request, audience, has_worked),
            Self::DeviceCode(device) => device.token(request, audience),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::AzureCli(_) => "az",
            Self::Secret(..) => "service principal with a secret",
            Self::Certificate(..) => "service principal with a certificate",
            Self::Federation(..) => "workload identity",
            Self::ManagedIdentity(_) => "managed identity",
            Self::DeviceCode(_) => "device code",
        }
    }
}
