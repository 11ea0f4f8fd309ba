public import MediaCore
import Threading

/// The reason why a synthetic source could not deliver.
public struct SyntheticSourceError: Error, Hashable, Sendable {
    /// The kind of error.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code's name; stable, for logs and JSON.
        public let name: String

        /// The clip has no pictures, or had none left when it was to be played again.
        public static let emptyClip = Code(name: "emptyClip")
        /// The clip's pictures have no pixels, or more than can be coded.
        public static let unusableSize = Code(name: "unusableSize")
        /// The system has no thread left for the source.
        public static let outOfResources = Code(name: "outOfResources")

        /// The code's name.
        public var description: String { name }
    }

    /// The kind of error.
    public let code: Code
    /// The size of the clip's pictures, as its file states it; 0x0 if the error is not about a clip.
    public let dimensions: Dimensions
    private let reason: String

    init(code: Code, dimensions: Dimensions) {
        self.code = code
        self.dimensions = dimensions
        reason = ""
    }

    init(_ shortage: ThreadShortage) {
        code = .outOfResources
        dimensions = Dimensions(width: 0, height: 0)
        reason = "\(shortage)"
    }
}

extension SyntheticSourceError: CodedError {
    /// The name of `code`.
    public var codeName: String { code.name }
}

extension SyntheticSourceError: CustomStringConvertible {
    /// What was wrong and what to do, in one or two sentences.
    public var description: String {
        switch code {
        case .outOfResources: "The source cannot be started: \(reason)."
        case .emptyClip: "The clip has no pictures. Check the file, or choose another one."
        default:
            "The clip's pictures are \(dimensions), which cannot be sent. Scale it to between 1x1 and "
                + "\(Dimensions.largestCodable) first."
        }
    }
}
