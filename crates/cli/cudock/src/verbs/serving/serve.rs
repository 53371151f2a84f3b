//! `cudock serve`.

use cudock_cli::ServeArgs;

use crate::failure::{Failure, Outcome};
use crate::steps::serve::{ServeRequest, serve};

pub(crate) fn run(args: ServeArgs) -> Result<Outcome, Failure> {
    serve(&request(args))
}

fn request(args: ServeArgs) -> ServeRequest {
    ServeRequest {
        path: args.path,
        port: args.port,
        name: args.name,
        options: args.options,
        settings: args.settings,
        server: args.server.options(),
        offline: args.offline,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser as _;
    use cudock_cli::{Cli, Verb};

    use super::*;

    #[test]
    fn up_serves_a_project_as_the_command_line_does() {
        let arguments = ["cudock", "serve", "digits", "--port", "0", "--offline"];
        let Verb::Serve(parsed) = Cli::try_parse_from(arguments).unwrap().verb else { panic!("not serve") };
        let up = ServeRequest::of_project(Path::new("digits"), Some(0), true);
        assert_eq!(format!("{up:?}"), format!("{:?}", request(*parsed)));
    }
}
