use crate::tables::{CudaError, FindingPage, FindingPages, Message, Messages};

impl Messages {
    /// The message with an id.
    pub fn get(&self, id: &str) -> Option<&Message> {
        self.message.iter().find(|message| message.id == id)
    }

    /// A CUDA error by its number or its name: `209`, `cudaErrorNoKernelImageForDevice`.
    pub fn cuda_error(&self, code_or_name: &str) -> Option<&CudaError> {
        let code = code_or_name.parse::<u16>().ok();
        self.cuda_error
            .iter()
            .find(|error| Some(error.code) == code || error.name.eq_ignore_ascii_case(code_or_name))
    }
}

impl FindingPages {
    /// The page of a code.
    pub fn get(&self, code: &str) -> Option<&FindingPage> {
        self.finding.iter().find(|page| page.code.eq_ignore_ascii_case(code))
    }
}
