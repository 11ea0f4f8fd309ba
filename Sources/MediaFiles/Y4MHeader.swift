import MediaCore

/// The header of a Y4M file (mjpegtools, yuv4mpeg(5)).
///
/// It is `YUV4MPEG2`, then words that each begin with a letter, in any order, up to a line feed.
struct Y4MHeader: Equatable {
    /// The size of the pictures.
    var dimensions: Dimensions
    /// Pictures per second.
    var frameRate: FrameRate

    /// The first word.
    static let signature: StaticString = "YUV4MPEG2"
    /// The beginning of every picture.
    static let frameSignature: StaticString = "FRAME"
    /// The line before a picture without parameters of its own, as everybody writes it.
    static let frameLine = Array("\(frameSignature)\n".utf8)
    /// The longest line that is read, in bytes; real ones have less than a hundred.
    static let lineLimit = 1024

    /// The header's line.
    ///
    /// It states JPEG's siting, with chroma in the middle of four pixels, because libyuv's conversions produce that.
    var line: String {
        "\(Self.signature) W\(dimensions.width) H\(dimensions.height)"
            + " F\(frameRate.numerator):\(frameRate.denominator) Ip A1:1 C420jpeg XCOLORRANGE=LIMITED\n"
    }

    /// The reason why a header cannot be used, and whether it is wrong or only not supported.
    struct Refusal: Error, Equatable {
        var code: MediaFileError.Code
        var reason: String
    }

    /// Creates a header with the given fields.
    init(dimensions: Dimensions, frameRate: FrameRate) {
        self.dimensions = dimensions
        self.frameRate = frameRate
    }

    /// Reads the header in `line`, which has no line feed.
    init(line: String) throws(Refusal) {
        var (width, height): (Int?, Int?)
        var frameRate: FrameRate?
        for word in line.split(separator: " ").dropFirst() {
            let value = word.dropFirst()
            switch word.first {
            case "W": width = try Self.side(value)
            case "H": height = try Self.side(value)
            case "F": frameRate = try Self.frameRate(value)
            case "C": try Self.checkSampling(value)
            case "X" where value == "COLORRANGE=FULL":
                throw Refusal(
                    code: .unsupported,
                    reason: "its pictures have full range, ours limited; \(Self.conversion)"
                )
            default: break
            }
        }
        guard let width, let height else {
            throw Refusal(code: .damaged, reason: "its header does not state the pictures' size (W and H)")
        }
        guard let frameRate else {
            throw Refusal(code: .damaged, reason: "its header does not state the frame rate (F)")
        }
        self.init(dimensions: Dimensions(width: width, height: height), frameRate: frameRate)
    }

    private static func side(_ text: Substring) throws(Refusal) -> Int {
        guard let value = Int(text), (1...Dimensions.largestCodable.width).contains(value) else {
            throw Refusal(code: .damaged, reason: "its pictures are \(text) pixels wide or high; VP8 codes 1 to 16383")
        }
        return value
    }

    /// The rate where the header states none.
    private static let usualRate = FrameRate(30)

    private static func frameRate(_ text: Substring) throws(Refusal) -> FrameRate {
        // The rate of pictures that come irregularly, as GStreamer states it, and one that is not known.
        if text.hasPrefix("0:"), Int(text.dropFirst(2)) != nil { return usualRate }
        let terms = text.split(separator: ":", omittingEmptySubsequences: false)
        // The limit on the terms keeps their products within 64 bits.
        let limit = 1...1_000_000_000
        guard terms.count == 2, let numerator = Int(terms[0]), let denominator = Int(terms[1]),
            limit.contains(numerator), limit.contains(denominator)
        else {
            throw Refusal(code: .damaged, reason: "its frame rate is \(text); it must be a fraction such as 30:1")
        }
        // Hardly a camera is so fast: ffmpeg and mpv state the unit of their timestamps here, such as 1000:1 or 90000:1, if
        // pictures come irregularly.
        return numerator / denominator < 1000 ? FrameRate(numerator: numerator, denominator: denominator) : usualRate
    }

    private static func checkSampling(_ text: Substring) throws(Refusal) {
        guard !["420", "420jpeg", "420mpeg2", "420paldv"].contains(text) else { return }
        throw Refusal(
            code: .unsupported,
            reason: "its pictures are C\(text), not C420 with 8 bits; \(conversion)"
        )
    }

    /// It also changes full range to limited range.
    private static let conversion =
        "convert it: ffmpeg -i FILE -pix_fmt yuv420p NEW.y4m, or with -f yuv4mpegpipe - before a pipe"
}

extension ScatterList {
    /// Adds the rows of the three planes of a picture of `dimensions` as they are in a file, without padding.
    @unsafe mutating func append(
        luma: UnsafeMutableRawPointer?,
        chromaU: UnsafeMutableRawPointer?,
        chromaV: UnsafeMutableRawPointer?,
        of buffer: VideoBuffer
    ) {
        guard let luma = unsafe luma, let chromaU = unsafe chromaU, let chromaV = unsafe chromaV else { return }
        let (size, chroma) = (buffer.dimensions, buffer.chromaDimensions)
        unsafe append(rowsAt: luma, width: size.width, stride: buffer.lumaStride, rows: size.height)
        unsafe append(rowsAt: chromaU, width: chroma.width, stride: buffer.chromaStride, rows: chroma.height)
        unsafe append(rowsAt: chromaV, width: chroma.width, stride: buffer.chromaStride, rows: chroma.height)
    }
}
