public import MediaCore
import RoomProtocol
import VP8Codec

/// Why compressed frames cannot be passed on as they are.
public struct VP8SourceError: Error, Hashable, Sendable {
    /// The kind of error.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code's name; stable, for logs and JSON.
        public let name: String

        /// The bytes are not a frame of VP8.
        public static let notVP8 = Code(name: "notVP8")
        /// The frame is not to be shown: an alternate reference frame.
        public static let invisibleFrame = Code(name: "invisibleFrame")
        /// The picture has more pixels than can be published.
        public static let pictureTooLarge = Code(name: "pictureTooLarge")
        /// The compressed frame has more bytes than can be sent.
        public static let frameTooLarge = Code(name: "frameTooLarge")
        /// The frames begin with some that refer to earlier ones; the source goes on with the first keyframe.
        public static let startsWithoutKeyframe = Code(name: "startsWithoutKeyframe")
        /// There is no keyframe, so that nothing can be shown.
        public static let noKeyframe = Code(name: "noKeyframe")

        /// The code's name.
        public var description: String { name }
    }

    /// The kind of error.
    public let code: Code
    /// What was found, as a sentence without a period.
    private let finding: String

    init(_ code: Code, _ finding: String) {
        self.code = code
        self.finding = finding
    }
}

extension VP8SourceError: CodedError {
    /// The name of `code`.
    public var codeName: String { code.name }
}

extension VP8SourceError: CustomStringConvertible {
    /// What was found and what to do about it, in one or two sentences, without the last full stop.
    public var description: String {
        let advice =
            switch code {
            case .invisibleFrame:
                "Encode without such frames: ffmpeg -auto-alt-ref 0, or vpxenc --auto-alt-ref=0"
            case .pictureTooLarge: "Encode smaller pictures"
            case .frameTooLarge: "Encode with a lower bitrate"
            case .startsWithoutKeyframe: "They are left out until the first keyframe"
            case .noKeyframe: "Begin with a keyframe, and have one every few seconds: ffmpeg -g 60"
            default: "Convert it: ffmpeg -i FILE -c:v libvpx -b:v 2M -auto-alt-ref 0 -g 60 NEW.ivf"
            }
        return "\(finding). \(advice)"
    }
}

extension VP8SourceError {
    /// Reads as much of a frame as it takes to pass it on.
    ///
    /// - Parameters:
    ///   - bytes: The compressed frame.
    ///   - name: What an error calls the frame.
    /// - Returns: The size of a keyframe's picture; `nil` for another frame.
    /// - Throws: `notVP8`, `invisibleFrame`, `pictureTooLarge`, `frameTooLarge`.
    static func inspect(
        _ bytes: RawSpan,
        named name: @autoclosure () -> String
    ) throws(VP8SourceError) -> Dimensions? {
        let dimensions: Dimensions?
        do throws(VP8Bitstream.Fault) {
            dimensions = try VP8Bitstream.inspect(bytes)
        } catch {
            switch error {
            case .empty: throw VP8SourceError(.notVP8, "\(name()) has no bytes")
            case .notVP8: throw VP8SourceError(.notVP8, "\(name()) is not VP8, or damaged")
            case .invisible:
                let finding = "is invisible (an alternate reference frame), and such frames are not passed on"
                throw VP8SourceError(.invisibleFrame, "\(name()) \(finding)")
            }
        }
        guard bytes.byteCount <= WireFormat.maximumFrame.bytes else {
            let finding = "has \(bytes.byteCount) bytes, and \(WireFormat.maximumFrame.bytes) are the most"
            throw VP8SourceError(.frameTooLarge, "\(name()) \(finding)")
        }
        if let dimensions, !TrackCodec.vp8.allows(dimensions) {
            let finding = "has \(dimensions) pixels, and those of \(TrackCodec.vp8.maximumDimensions) are the most"
            throw VP8SourceError(.pictureTooLarge, "\(name()) \(finding)")
        }
        return dimensions
    }
}
