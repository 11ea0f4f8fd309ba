import CVPX

/// The reason why a VP8 encoder or decoder failed.
package struct VP8Error: Error, Hashable, Sendable {
    /// The kind of failure.
    package struct Code: Hashable, Sendable {
        private let rawValue: UInt8

        /// The settings are outside what VP8 or this module supports.
        package static let unsupportedSettings = Code(rawValue: 0)
        /// The size is larger than the one that the encoder was opened with.
        package static let sizeIncrease = Code(rawValue: 1)
        /// The frame does not have the size that the encoder is set to.
        package static let wrongFrameSize = Code(rawValue: 2)
        /// The bytes are not a VP8 frame, or a damaged one.
        package static let damagedData = Code(rawValue: 3)
        /// The picture is larger than the decoder was opened for.
        package static let pictureTooLarge = Code(rawValue: 4)
        /// The frame refers to others that this decoder does not have.
        package static let keyframeNeeded = Code(rawValue: 5)
        /// libvpx refused or failed.
        package static let libraryFailure = Code(rawValue: 6)
    }

    /// The kind of failure.
    package let code: Code
    /// What was attempted, as the continuation of "Cannot …".
    package let attempt: String
    /// The `vpx_codec_err_t` that libvpx returned; `nil` if libvpx was not called.
    package let status: Int?
    /// Details beyond `code`: the refused values, or libvpx's own message.
    package let detail: String?

    init(_ code: Code, attempt: String, detail: String? = nil, status: Int? = nil) {
        self.code = code
        self.attempt = attempt
        self.status = status
        self.detail = detail
    }
}

extension VP8Error: CustomStringConvertible {
    /// What happened and what to do about it, as a sentence.
    package var description: String {
        let facts = [detail, status.map { "libvpx status \($0)" }].compactMap(\.self)
        return "Cannot \(attempt)\(facts.isEmpty ? "" : " (\(facts.joined(separator: ", ")))"): \(advice)"
    }

    private var advice: String {
        switch code {
        case .unsupportedSettings:
            """
            choose a size of at most 16383 pixels a side and as many pixels as \(VP8Decoder.maximumDimensions) has, \
            and one to three temporal layers.
            """
        case .sizeIncrease: "an encoder only shrinks; open it at the largest size it will ever need."
        case .wrongFrameSize: "scale the frame, or reconfigure the encoder to the frame's size first."
        case .damagedData: "the data is not a whole VP8 frame; go on with the next keyframe."
        case .pictureTooLarge: "the picture is too large; if you trust the sender, open the decoder for a larger one."
        case .keyframeNeeded: "decoding begins with a keyframe; ask the sender for one."
        default: "libvpx failed; if this repeats, check that the installed libvpx is the one the program was built for."
        }
    }
}

/// Owns a libvpx context at a fixed address, because libvpx keeps pointers into it; confine to one thread.
@safe struct CodecContext: ~Copyable {
    /// The context, valid only as long as this value; do not keep the pointer.
    let pointer: UnsafeMutablePointer<vpx_codec_ctx_t>

    /// Creates a context for an `open` function of libvpx.
    init() {
        unsafe pointer = .allocate(capacity: 1)
        unsafe pointer.initialize(to: vpx_codec_ctx_t())
    }

    deinit {
        // libvpx does nothing with a context that was never opened, and reports that.
        unsafe vpx_codec_destroy(pointer)
        unsafe pointer.deallocate()
    }

    /// Throws an error unless `status` is success.
    func check(_ status: vpx_codec_err_t, _ attempt: @autoclosure () -> String) throws(VP8Error) {
        if status != VPX_CODEC_OK { throw failure(.libraryFailure, status, attempt()) }
    }

    /// Sets one of libvpx's controls.
    func set(_ control: vp8e_enc_control_id, to value: Int32) throws(VP8Error) {
        try check(
            unsafe cvpx_set(pointer, Int32(control.rawValue), value),
            "set libvpx's control \(control.rawValue) to \(value)"
        )
    }

    /// Reads a number by one of libvpx's controls.
    func value(of control: vp8e_enc_control_id) throws(VP8Error) -> Int32 {
        var value: Int32 = 0
        try check(
            unsafe cvpx_get(pointer, Int32(control.rawValue), &value),
            "read libvpx's control \(control.rawValue)"
        )
        return value
    }

    /// The error for a `status` that libvpx returned, with libvpx's own message.
    func failure(_ code: VP8Error.Code, _ status: vpx_codec_err_t, _ attempt: String) -> VP8Error {
        // For some failures, libvpx has no message except the name of the status.
        let words = unsafe vpx_codec_error_detail(pointer) ?? vpx_codec_err_to_string(status)
        return VP8Error(
            code,
            attempt: attempt,
            detail: unsafe words.map { unsafe String(cString: $0) },
            status: Int(Int32(truncatingIfNeeded: status.rawValue))
        )
    }
}
