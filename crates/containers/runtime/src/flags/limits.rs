//! The values of memory limits.

use cudock_base::UsageError;

use super::values::bytes;

pub(crate) const MIN_MEMORY: u64 = 6 << 20;

pub fn memory(text: &str) -> Result<u64, UsageError> {
    let memory = bytes(text)?;
    if memory < MIN_MEMORY {
        return Err(UsageError::new("a container needs at least 6 MiB of memory").hint("-m 512m"));
    }
    Ok(memory)
}

/// The value of `--memory-swap`: memory and swap together, or -1 for no limit.
pub fn memory_swap(text: &str, memory: Option<u64>) -> Result<i64, UsageError> {
    let Some(memory) = memory else {
        return Err(UsageError::new("--memory-swap is memory and swap together, and needs --memory")
            .hint("-m 16g --memory-swap 16g allows no swap"));
    };
    if text == "-1" {
        return Ok(-1);
    }
    let both = bytes(text)?;
    if both < memory {
        return Err(UsageError::new("--memory-swap is less than --memory, which it includes")
            .hint("-m 16g --memory-swap 16g allows no swap"));
    }
    i64::try_from(both).map_err(|_| UsageError::new(format!("--memory-swap {text} is too large")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_has_at_least_6_mib_and_swap_includes_memory() {
        assert_eq!(memory("6m").unwrap(), 6 << 20);
        assert!(memory("5m").is_err());
        assert_eq!(memory_swap("-1", Some(1 << 30)).unwrap(), -1);
        assert_eq!(memory_swap("2g", Some(1 << 30)).unwrap(), 2 << 30);
        assert!(memory_swap("512m", Some(1 << 30)).is_err());
        assert!(memory_swap("1g", None).is_err());
    }
}
