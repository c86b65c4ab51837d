//! The instructions of a function, each with its samples and its source line.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, Mnemonic, OpKind};

use crate::filter::Filter;
use crate::found_symbol::{FoundName, FoundSymbol, Reason, SourceLine};
use crate::function_code::{CodeError, FunctionCode, function_code};
use crate::guard::guarded;
use crate::module_names::Symbol;
use crate::newer_code::decode;
use crate::read::Contents;
use crate::sampled_sources::SampledSource;
use crate::sums::SampleWeight;
use crate::symbol_index::{SymbolId, SymbolIndex};
use crate::symbols::{SymbolFinder, Symbols};

/// Why a function cannot be annotated.
#[derive(Debug, thiserror::Error)]
pub enum AnnotationError {
    /// No image of the module exists.
    #[error("no image was found")]
    NoImage,
    /// The image of the module cannot be used.
    #[error(transparent)]
    Image(Reason),
    /// The image cannot be read.
    #[error("{} cannot be read", .path.display())]
    Unreadable {
        /// The image.
        path: PathBuf,
        /// Error of the system.
        #[source]
        cause: io::Error,
    },
    /// The image has no code of the function.
    #[error("{} has no code of the function", .path.display())]
    Code {
        /// The image.
        path: PathBuf,
        /// What is wrong.
        #[source]
        cause: CodeError,
    },
}

impl From<Reason> for AnnotationError {
    fn from(reason: Reason) -> Self {
        if reason == Reason::NotFound { Self::NoImage } else { Self::Image(reason) }
    }
}

/// An instruction with its samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotatedInstruction {
    /// Address relative to the base of the module.
    pub address: u32,
    /// Number of bytes.
    pub length: usize,
    /// The instruction in Intel's syntax, or its bytes if the decoder does not know it. Addresses in it are relative to
    /// the base of the module.
    pub text: String,
    /// Whether it is an instruction of APX or AVX10.2, which the decoder does not know.
    pub is_newer: bool,
    /// Name of the function to which it branches, if that is another one.
    pub target: Option<String>,
    /// Its samples.
    pub weight: SampleWeight,
    /// Its line of source code, if the symbols have it.
    pub source: Option<SourceLine>,
}

/// A function with its samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// The file with the machine code.
    pub image: PathBuf,
    /// Every instruction, in ascending order of addresses.
    pub instructions: Vec<AnnotatedInstruction>,
    /// Samples of the symbol.
    pub total: SampleWeight,
    /// Samples of the symbol that are outside the function, because the symbol table has no name there.
    pub outside: SampleWeight,
}

impl Annotation {
    /// Annotates a symbol with the samples of `source` that `filter` selects.
    ///
    /// # Errors
    /// If the image of the recorded build is not found, or has no code of the function.
    pub fn new(
        contents: &Contents,
        symbol_index: &SymbolIndex,
        symbol: SymbolId,
        source: impl Into<SampledSource>,
        filter: &Filter,
        finder: &SymbolFinder,
    ) -> Result<Self, AnnotationError> {
        let mut samples = samples(contents, symbol_index, symbol, source.into(), filter);
        let total = sum(&samples);
        let Some((symbol, module)) = symbol_index
            .symbol_of(symbol)
            .and_then(|symbol| Some((symbol, symbol_index.modules().get(symbol.module)?)))
        else {
            return Err(AnnotationError::NoImage);
        };
        let image = finder.image_file(module)?;
        let bytes = fs::read(&image).map_err(|cause| AnnotationError::Unreadable { path: image.clone(), cause })?;
        let symbols = finder.find(module).ok();
        let limit = limit(symbol, symbols.as_ref());
        let read = || {
            let code = function_code(&bytes, symbol.address, limit)?;
            Ok(instructions(&code, symbols.as_ref(), &mut samples))
        };
        let read = guarded(read).unwrap_or_else(|failure| Err(CodeError::Image(failure)));
        let instructions = read.map_err(|cause| AnnotationError::Code { path: image.clone(), cause })?;
        let outside = sum(&samples);
        Ok(Self { image, instructions, total, outside })
    }
}

fn sum(samples: &BTreeMap<u32, SampleWeight>) -> SampleWeight {
    samples.values().fold(SampleWeight::default(), |mut sum, weight| {
        sum += *weight;
        sum
    })
}

/// Returns the samples of a symbol by address.
fn samples(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    symbol: SymbolId,
    source: SampledSource,
    filter: &Filter,
) -> BTreeMap<u32, SampleWeight> {
    let mut samples: BTreeMap<u32, SampleWeight> = BTreeMap::new();
    let locations = contents.sample_counts.locations().filter(|(location, _)| location.sampled_source() == source);
    let selected = locations.filter(|(location, _)| filter.selects_location(location, symbol_index));
    for (location, weight) in selected.filter(|(location, _)| symbol_index.symbol_id(location) == Some(symbol)) {
        let found = contents.processes.module_at(location.process, location.kernel, location.ip);
        if let Some(offset) = found.and_then(|(_, offset)| u32::try_from(offset).ok()) {
            *samples.entry(offset).or_default() += weight;
        }
    }
    samples
}

/// Returns the end of a symbol, or the beginning of the next one.
fn limit(symbol: &Symbol, symbols: Option<&Symbols>) -> Option<u32> {
    let end = symbol.size.filter(|size| *size > 0).and_then(|size| symbol.address.checked_add(size));
    end.or_else(|| symbols?.next_after(symbol.address))
}

/// Decodes the instructions, and takes from `samples` those in the function. Padding behind the function is left out.
fn instructions(
    code: &FunctionCode,
    symbols: Option<&Symbols>,
    samples: &mut BTreeMap<u32, SampleWeight>,
) -> Vec<AnnotatedInstruction> {
    let bitness = if code.is_64_bit { 64 } else { 32 };
    let end = code.address.saturating_add(u32::try_from(code.bytes.len()).unwrap_or(u32::MAX));
    let mut formatter = formatter();
    let mut instructions = Vec::new();
    let mut kept = 0;
    let mut decoder = Decoder::with_ip(bitness, &code.bytes, code.address.into(), DecoderOptions::NONE);
    while decoder.can_decode() {
        let (instruction, newer) = decode(&mut decoder, &code.bytes);
        let Ok(address) = u32::try_from(instruction.ip()) else { break };
        let length = newer.map_or(instruction.len(), <[u8]>::len);
        let mut text = String::new();
        match newer {
            Some(bytes) => text = bytes.iter().fold("bytes".to_owned(), |text, byte| format!("{text} {byte:02x}")),
            None => formatter.format(&instruction, &mut text),
        }
        let target = branch_target(&instruction).filter(|target| !(code.address..end).contains(target));
        let target = target.and_then(|target| target_name(&symbols?.at(target)?, target));
        let mut weight = SampleWeight::default();
        // An interrupt comes between two instructions, so all samples have the first byte of one. If they do not, the
        // recording says otherwise than the image, and the samples still belong here.
        let next = address.saturating_add(u32::try_from(length).unwrap_or(u32::MAX)).min(end);
        while let Some((offset, found)) = samples.range(address..next).next().map(|(offset, found)| (*offset, *found)) {
            samples.remove(&offset);
            weight += found;
        }
        let source = symbols.and_then(|symbols| symbols.source_line(address));
        let is_newer = newer.is_some();
        instructions.push(AnnotatedInstruction { address, length, text, is_newer, target, weight, source });
        if weight.samples > 0 || !is_padding(&instruction) {
            kept = instructions.len();
        }
    }
    instructions.truncate(kept);
    instructions
}

/// Creates a formatter whose numbers look like those in the rest of the output.
fn formatter() -> IntelFormatter {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_space_after_operand_separator(true);
    options.set_branch_leading_zeros(false);
    options.set_displacement_leading_zeros(false);
    formatter
}

/// Returns the target of a direct branch or call.
fn branch_target(instruction: &Instruction) -> Option<u32> {
    let is_direct =
        matches!(instruction.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64);
    is_direct.then(|| u32::try_from(instruction.near_branch_target()).ok()).flatten()
}

/// Returns the name of the code at `target` in a function, if that has one.
fn target_name(symbol: &FoundSymbol, target: u32) -> Option<String> {
    let FoundName { text, .. } = symbol.name.as_ref()?;
    Some(match target.saturating_sub(symbol.address) {
        0 => text.clone(),
        offset => format!("{text}+{offset:#x}"),
    })
}

/// Returns whether compilers fill the space between functions with the instruction.
fn is_padding(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Int3 | Mnemonic::Nop)
}
