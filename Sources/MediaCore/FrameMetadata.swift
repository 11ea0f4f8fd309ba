/// Bytes of the application's own that travel with a frame, from its source to the subscribers' renderers.
public struct FrameMetadata: Hashable, Sendable {
    /// The most bytes that a frame can carry.
    public static let maximumSize = DataSize(bytes: 900)

    /// The bytes.
    public let bytes: [UInt8]

    /// Creates metadata of at most `maximumSize`.
    ///
    /// - Throws: `FrameMetadataTooLarge` for more bytes.
    public init(_ bytes: [UInt8]) throws(FrameMetadataTooLarge) {
        let size = DataSize(bytes: bytes.count)
        guard size <= Self.maximumSize else { throw FrameMetadataTooLarge(size: size) }
        self.bytes = bytes
    }
}

/// The error for metadata that a frame cannot carry.
public struct FrameMetadataTooLarge: Error, Hashable, Sendable, CustomStringConvertible {
    /// The size of the metadata.
    public let size: DataSize

    /// What is allowed, in one sentence.
    public var description: String {
        "A frame carries at most \(FrameMetadata.maximumSize.bytes) bytes of metadata, not \(size.bytes)."
    }
}
