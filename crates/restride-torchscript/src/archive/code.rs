//! The code of an archive: classes and functions by their qualified names, parsed when they are asked for.

use super::debug::DebugSource;
use crate::eval::{ClassInfo, Definition, Library};
use crate::source::SourceText;
use crate::syntax::ast::{AstKind, Stmt, StmtKind};
use crate::syntax::parse;
use crate::value::{CodeFunction, PyValue};
use restride_ir::Result;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// A parsed file.
#[derive(Default)]
struct File {
    classes: HashMap<Arc<str>, Rc<ClassInfo>>,
    functions: HashMap<Arc<str>, Rc<CodeFunction>>,
}

/// The code of an archive.
pub struct ArchiveCode {
    /// Texts by qualifier (`__torch__.torch.nn`).
    sources: HashMap<String, Arc<SourceText>>,
    files: RefCell<HashMap<String, Rc<File>>>,
    constants: RefCell<Vec<PyValue>>,
}

impl ArchiveCode {
    /// The code in texts by path (`code/__torch__/m.py`).
    pub fn new(texts: impl IntoIterator<Item = (String, String, Option<DebugSource>)>) -> ArchiveCode {
        let mut sources = HashMap::new();
        for (path, text, debug) in texts {
            let qualifier = path.trim_start_matches("code/").trim_end_matches(".py").replace('/', ".");
            sources.insert(qualifier, SourceText::with_debug(path, text, debug));
        }
        ArchiveCode { sources, files: RefCell::default(), constants: RefCell::default() }
    }

    /// Sets the archive's constants.
    pub fn set_constants(&self, constants: Vec<PyValue>) {
        *self.constants.borrow_mut() = constants;
    }

    /// A class by its qualified name.
    ///
    /// # Errors
    /// ArchiveCode that does not parse.
    pub fn class(&self, name: &str) -> Result<Option<Rc<ClassInfo>>> {
        Ok(match self.find(name)? {
            Some(Definition::Class(info)) => Some(info),
            _ => None,
        })
    }

    fn file(&self, qualifier: &str) -> Result<Option<Rc<File>>> {
        if let Some(file) = self.files.borrow().get(qualifier) {
            return Ok(Some(file.clone()));
        }
        let Some(source) = self.sources.get(qualifier) else { return Ok(None) };
        let mut file = File::default();
        for stmt in parse(source)? {
            match &stmt.kind {
                StmtKind::Class(def) => {
                    let name: Arc<str> = format!("{qualifier}.{}", def.name).into();
                    let info = class_info(name, def.base.clone(), &def.body, source);
                    file.classes.insert(def.name.clone(), Rc::new(info));
                }
                StmtKind::Def(def) => {
                    let function = CodeFunction::new(def.clone(), source.clone());
                    file.functions.insert(def.name.clone(), Rc::new(function));
                }
                _ => {}
            }
        }
        let file = Rc::new(file);
        self.files.borrow_mut().insert(qualifier.to_string(), file.clone());
        Ok(Some(file))
    }
}

/// What a class's statements declare.
pub(crate) fn class_info(name: Arc<str>, base: Option<Arc<str>>, body: &[Stmt], source: &Arc<SourceText>) -> ClassInfo {
    let mut info = ClassInfo {
        name,
        base,
        methods: HashMap::new(),
        fields: Vec::new(),
        parameters: Vec::new(),
        buffers: Vec::new(),
        source: source.clone(),
    };
    for stmt in body {
        match &stmt.kind {
            StmtKind::Def(def) => {
                let function = CodeFunction::new(def.clone(), source.clone());
                info.methods.insert(def.name.clone(), Rc::new(function));
            }
            StmtKind::Annotated(target, _, value) => {
                if let AstKind::Name(name) = &target.kind {
                    info.fields.push((name.clone(), value.clone()));
                }
            }
            StmtKind::Assign(targets, value) => {
                let [target] = &targets[..] else { continue };
                let strings = |value: &crate::syntax::ast::Ast| match &value.kind {
                    AstKind::List(items) => items
                        .iter()
                        .filter_map(|i| if let AstKind::Str(s) = &i.kind { Some(s.clone()) } else { None })
                        .collect(),
                    _ => Vec::new(),
                };
                match &target.kind {
                    AstKind::Name(n) if **n == *"__parameters__" => info.parameters = strings(value),
                    AstKind::Name(n) if **n == *"__buffers__" => info.buffers = strings(value),
                    AstKind::Name(n) => info.fields.push((n.clone(), Some(value.clone()))),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    info
}

impl Library for ArchiveCode {
    fn find(&self, name: &str) -> Result<Option<Definition>> {
        let Some((qualifier, own)) = name.rsplit_once('.') else { return Ok(None) };
        let Some(file) = self.file(qualifier)? else { return Ok(None) };
        if let Some(class) = file.classes.get(own) {
            return Ok(Some(Definition::Class(class.clone())));
        }
        Ok(file.functions.get(own).map(|f| Definition::Function(f.clone())))
    }

    fn constant(&self, i: usize) -> Option<PyValue> {
        self.constants.borrow().get(i).cloned()
    }
}
