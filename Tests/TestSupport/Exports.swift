// `import TestSupport` alone gives the tools as well.
@_exported public import TestTools
