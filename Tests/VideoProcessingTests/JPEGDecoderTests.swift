import CTurboJPEG
import Glibc
import MediaCore
import Testing
import Threading
import VideoProcessing

/// Makes JPEG pictures with the library's own compressor.
struct JPEGMaker {
    /// Picture of `width` × `height` whose planes are smooth gradients of full range.
    static func make(
        _ width: Int,
        _ height: Int,
        _ subsampling: TJSAMP = TJSAMP_420,
        restartRows: Int? = nil
    ) throws -> (bytes: [UInt8], planes: [ReferencePlane]) {
        // The library takes restart intervals from the environment alone.
        if let restartRows { setenv("TJ_RESTART", "\(restartRows)", 1) }
        defer { unsetenv("TJ_RESTART") }
        let count = subsampling == TJSAMP_GRAY ? 1 : 3
        let code = Int32(subsampling.rawValue)
        let planes = (0..<count).map { component in
            ReferencePlane(
                Int(tjPlaneWidth(Int32(component), Int32(width), code)),
                Int(tjPlaneHeight(Int32(component), Int32(height), code))
            ) { column, row in
                let x = Double(column) / Double(tjPlaneWidth(Int32(component), Int32(width), code))
                let y = Double(row) / Double(tjPlaneHeight(Int32(component), Int32(height), code))
                return switch component {
                case 0: UInt8(255 * (x + y) / 2)
                case 1: UInt8(255 * x)
                default: UInt8(255 * (1 - y))
                }
            }
        }
        let handle = try #require(tjInitCompress())
        defer { tjDestroy(handle) }
        var output: UnsafeMutablePointer<UInt8>?
        var size: UInt = 0
        var joined = planes.flatMap(\.bytes)
        let status = joined.withUnsafeMutableBufferPointer { joined in
            var offset = 0
            var pointers: [UnsafePointer<UInt8>?] = planes.map { plane in
                defer { offset += plane.bytes.count }
                return joined.baseAddress.map { UnsafePointer($0 + offset) }
            }
            pointers += Array(repeating: nil, count: 3 - count)
            return tjCompressFromYUVPlanes(
                handle,
                &pointers,
                Int32(width),
                planes.map { Int32($0.width) } + [0, 0],
                Int32(height),
                code,
                &output,
                &size,
                98,
                0
            )
        }
        #expect(status == 0)
        defer { tjFree(output) }
        return (Array(UnsafeBufferPointer(start: output, count: Int(size))), planes)
    }

    /// The segments of a JPEG file before the picture data, as ranges that include their markers.
    static func segments(_ bytes: [UInt8]) -> [(marker: UInt8, range: Range<Int>)] {
        var result: [(UInt8, Range<Int>)] = []
        var position = 2
        while position + 4 <= bytes.count, bytes[position] == 0xFF, result.last?.0 != 0xDA {
            let length = Int(bytes[position + 2]) << 8 | Int(bytes[position + 3])
            result.append((bytes[position + 1], position..<position + 2 + length))
            position += 2 + length
        }
        return result
    }
}

@Suite("JPEG decoder", .timeLimit(.minutes(2)))
struct JPEGDecoderTests {
    private let pool = VideoBufferPool()

    private func decode(_ bytes: [UInt8], _ width: Int, _ height: Int) throws -> ReferencePicture {
        var decoder = try JPEGDecoder()
        let size = Dimensions(width: width, height: height)
        return ReferencePicture(try decoder.decode(bytes.span.bytes, dimensions: size, pool: pool))
    }

    /// Full range to limited range, by the formula.
    private func limited(_ value: UInt8, isChroma: Bool) -> Int {
        let value = Double(value)
        return Int((isChroma ? 128 + (value - 128) * 224 / 255 : 16 + value * 219 / 255).rounded())
    }

    @Test(
        "Every subsampling is brought to 4:2:0 and to limited range",
        arguments: [
            TJSAMP_420, TJSAMP_422, TJSAMP_444, TJSAMP_440, TJSAMP_411, TJSAMP_GRAY,
        ].map(\.rawValue),
        [(64, 48), (65, 47), (33, 18), (128, 16)]
    )
    func subsamplings(subsampling: UInt32, size: (Int, Int)) throws {
        let (width, height) = size
        let (bytes, planes) = try JPEGMaker.make(width, height, TJSAMP(rawValue: subsampling))
        let result = try decode(bytes, width, height)
        for row in 0..<height {
            for column in 0..<width {
                let expected = limited(planes[0][column, row], isChroma: false)
                #expect(abs(Int(result.luma[column, row]) - expected) <= 3)
            }
        }
        for (component, plane) in [result.chromaU, result.chromaV].enumerated() {
            for row in 0..<plane.height {
                for column in 0..<plane.width {
                    guard planes.count == 3 else {
                        #expect(plane[column, row] == 128)
                        continue
                    }
                    let source = planes[component + 1]
                    let x = min(column * source.width / plane.width, source.width - 1)
                    let y = min(row * source.height / plane.height, source.height - 1)
                    // The gradient moves by up to 8 steps between the samples that scaling chooses from.
                    #expect(abs(Int(plane[column, row]) - limited(source[x, y], isChroma: true)) <= 24)
                }
            }
        }
    }

    @Test("The range is converted exactly: black, white and all between")
    func range() throws {
        let size = Dimensions(width: 16, height: 16)
        for value in stride(from: 0, through: 255, by: 5) {
            // RGB greys have neutral chroma, and a flat picture has no coding error.
            var pixels = [UInt8](repeating: UInt8(value), count: 16 * 16 * 3)
            let handle = try #require(tjInitCompress())
            defer { tjDestroy(handle) }
            var output: UnsafeMutablePointer<UInt8>?
            var count: UInt = 0
            #expect(
                tjCompress2(
                    handle,
                    &pixels,
                    16,
                    0,
                    16,
                    Int32(TJPF_RGB.rawValue),
                    &output,
                    &count,
                    Int32(TJSAMP_420.rawValue),
                    100,
                    0
                )
                    == 0
            )
            defer { tjFree(output) }
            let bytes = Array(UnsafeBufferPointer(start: output, count: Int(count)))
            let result = try decode(bytes, size.width, size.height)
            #expect(result.luma.bytes.allSatisfy { Int($0) == limited(UInt8(value), isChroma: false) })
            #expect(result.chromaU.bytes.allSatisfy { $0 == 128 } && result.chromaV.bytes.allSatisfy { $0 == 128 })
        }
    }

    @Test("A picture without Huffman tables is decoded with the standard ones")
    func missingTables() throws {
        let bytes = try JPEGMaker.make(64, 48).bytes
        var stripped = bytes
        let tables = JPEGMaker.segments(bytes).filter { $0.marker == 0xC4 }
        #expect(!tables.isEmpty)
        for segment in tables.reversed() { stripped.removeSubrange(segment.range) }
        let isSame = try decode(stripped, 64, 48) == decode(bytes, 64, 48)
        #expect(isSame)
    }

    @Test("Stray bytes before a marker are counted and do no harm")
    func strayBytes() throws {
        let bytes = try JPEGMaker.make(64, 48).bytes
        var stray = bytes
        // More than the decoder reads ahead.
        stray.insert(contentsOf: Array(repeating: 1, count: 24), at: stray.count - 2)
        stray += [0, 0, 0]
        var decoder = try JPEGDecoder()
        let buffer = try decoder.decode(stray.span.bytes, dimensions: Dimensions(width: 64, height: 48), pool: pool)
        #expect(decoder.harmlessWarnings == 1)
        let isSame = try ReferencePicture(buffer) == decode(bytes, 64, 48)
        #expect(isSame)
        let header = try #require(JPEGMaker.segments(bytes).first)
        stray = bytes
        stray.insert(contentsOf: [1, 2], at: header.range.upperBound)
        let second = try decoder.decode(stray.span.bytes, dimensions: Dimensions(width: 64, height: 48), pool: pool)
        #expect(decoder.harmlessWarnings == 2)
        let isSecondSame = ReferencePicture(second) == ReferencePicture(buffer)
        #expect(isSecondSame)
    }

    // Any number of bytes was waved through, so that a scan that ended early was shown with its rest in grey.
    @Test("More stray bytes than fill up a scan are damage", arguments: [41, 200, 5000])
    func manyStrayBytes(count: Int) throws {
        let bytes = try JPEGMaker.make(64, 48).bytes
        var stray = bytes
        stray.insert(contentsOf: Array(repeating: 1, count: count), at: stray.count - 2)
        #expect(throws: DamagedPicture.undecodable) { try decode(stray, 64, 48) }
        let header = try #require(JPEGMaker.segments(bytes).first)
        stray = bytes
        stray.insert(contentsOf: Array(repeating: 1, count: count), at: header.range.upperBound)
        #expect(throws: DamagedPicture.undecodable) { try decode(stray, 64, 48) }
    }

    // The library fails, but keeps the code of the warning before: whatever the buffer held went out as a picture.
    @Test("Missing tables do not hide behind stray bytes in the header")
    func hiddenFailure() throws {
        let bytes = try JPEGMaker.make(64, 48).bytes
        var broken = bytes
        for table in JPEGMaker.segments(bytes).filter({ $0.marker == 0xDB }).reversed() {
            broken.removeSubrange(table.range)
        }
        let first = try #require(JPEGMaker.segments(bytes).first)
        broken.insert(contentsOf: [1, 2, 3], at: first.range.upperBound)
        #expect(throws: DamagedPicture.undecodable) { try decode(broken, 64, 48) }
    }

    // The library keeps its first warning alone: behind stray bytes in the header, anything went unseen.
    @Test("Damage in the scan does not hide behind stray bytes in the header")
    func hiddenDamage() throws {
        for subsampling in [TJSAMP_420, TJSAMP_422, TJSAMP_444, TJSAMP_GRAY] {
            let bytes = try JPEGMaker.make(64, 48, subsampling).bytes
            let segments = JPEGMaker.segments(bytes)
            let first = try #require(segments.first)
            let scan = try #require(segments.last).range.upperBound
            for cut in [1, 3, 20, bytes.count - 2 - scan] {
                var damaged = bytes
                damaged.removeSubrange(damaged.count - 2 - cut..<damaged.count - 2)
                damaged.insert(contentsOf: [1, 2], at: first.range.upperBound)
                #expect(throws: DamagedPicture.undecodable) { try decode(damaged, 64, 48) }
            }
            var stray = bytes
            stray.insert(contentsOf: [1, 2], at: first.range.upperBound)
            let isSame = try decode(stray, 64, 48) == decode(bytes, 64, 48)
            #expect(isSame)
        }
    }

    @Test("Stray bytes before restart markers do no harm, and damage behind them is seen")
    func restartMarkers() throws {
        let bytes = try JPEGMaker.make(128, 96, TJSAMP_422, restartRows: 1).bytes
        let plain = try decode(bytes, 128, 96)
        let markers = bytes.indices.dropLast().filter { bytes[$0] == 0xFF && (0xD0...0xD7).contains(bytes[$0 + 1]) }
        #expect(markers.count > 3)
        var stray = bytes
        for marker in markers.reversed() { stray.insert(contentsOf: Array(repeating: 1, count: 20), at: marker) }
        let isSame = try decode(stray, 128, 96) == plain
        #expect(isSame)
        var damaged = stray
        damaged.removeSubrange(damaged.count - 20..<damaged.count - 2)
        #expect(throws: DamagedPicture.undecodable) { try decode(damaged, 128, 96) }
    }

    @Test("A picture of another size than the layout's is refused", arguments: [(64, 47), (63, 48), (48, 64), (1, 1)])
    func otherSize(width: Int, height: Int) throws {
        let bytes = try JPEGMaker.make(64, 48).bytes
        #expect(throws: DamagedPicture.otherSize(Dimensions(width: 64, height: 48))) {
            try decode(bytes, width, height)
        }
    }

    @Test(
        "A picture cut at any length is refused, and the decoder goes on",
        arguments: [TJSAMP_420, TJSAMP_422].map(\.rawValue)
    )
    func truncated(subsampling: UInt32) throws {
        let bytes = try JPEGMaker.make(40, 24, TJSAMP(rawValue: subsampling)).bytes
        let size = Dimensions(width: 40, height: 24)
        var decoder = try JPEGDecoder()
        for count in 0..<bytes.count {
            let part = Array(bytes[..<count])
            var isRefused = false
            do throws(DamagedPicture) {
                _ = try decoder.decode(part.span.bytes, dimensions: size, pool: pool)
            } catch {
                isRefused = error == .undecodable
            }
            #expect(isRefused, "cut at \(count)")
        }
        let buffer = try decoder.decode(bytes.span.bytes, dimensions: size, pool: pool)
        let isSame = try ReferencePicture(buffer) == decode(bytes, 40, 24)
        #expect(isSame && decoder.harmlessWarnings == 0)
    }

    @Test("Flipped and random bytes do no harm", arguments: [1, 2, 3, 4] as [UInt64])
    func corrupt(seed: UInt64) throws {
        var state = seed
        let random = { (limit: Int) -> Int in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % limit
        }
        let samplings = [TJSAMP_420, TJSAMP_422, TJSAMP_444, TJSAMP_440, TJSAMP_411, TJSAMP_GRAY]
        let good = try JPEGMaker.make(37, 27, samplings[random(samplings.count)]).bytes
        var decoder = try JPEGDecoder()
        var (whole, refused) = (0, 0)
        for _ in 0..<1500 {
            var bytes = good
            for _ in 0...random(4) { bytes[random(bytes.count)] = UInt8(random(256)) }
            do throws(DamagedPicture) {
                _ = try decoder.decode(bytes.span.bytes, dimensions: Dimensions(width: 37, height: 27), pool: pool)
                whole += 1
            } catch {
                refused += 1
            }
        }
        #expect(whole > 0 && refused > 0)
        let noise = (0..<2000).map { _ in UInt8(random(256)) }
        #expect(throws: DamagedPicture.undecodable) { try decode(noise, 37, 27) }
        #expect(throws: DamagedPicture.undecodable) { try decode([0xFF, 0xD8] + noise, 37, 27) }
    }

    /// What a converter makes of pictures, one after another, whose driver states 64x48.
    private func convert(
        _ pictures: [[UInt8]],
        to size: Dimensions? = nil
    ) throws -> [Result<Dimensions, DamagedPicture>] {
        let converter = try FrameConverter(transform: FrameTransform(size: size))
        let layout = CapturedLayout(pixelFormat: .mjpeg, dimensions: Dimensions(width: 64, height: 48), bytesPerRow: 0)
        return pictures.map { bytes in
            Result { () throws(DamagedPicture) in
                try converter.convert(bytes.span.bytes, layout: layout, timestamp: MonotonicInstant(nanoseconds: 1))
                    .dimensions
            }
        }
    }

    @Test(
        "A camera whose pictures all have another size than its driver states is believed with the third",
        arguments: [(64, 64), (32, 24), (128, 96), (80, 48)]
    )
    func claimedSize(width: Int, height: Int) throws {
        let size = Dimensions(width: width, height: height)
        let bytes = try JPEGMaker.make(width, height).bytes
        let stated = try JPEGMaker.make(64, 48).bytes
        let results = try convert([bytes, bytes, bytes, bytes, Array(bytes.dropLast(20)), bytes, stated, bytes])
        let refused = Result<Dimensions, DamagedPicture>.failure(.otherSize(size))
        #expect(results[..<2] == [refused, refused])
        #expect(results[2...5] == [.success(size), .success(size), .failure(.undecodable), .success(size)])
        #expect(results[6...] == [.success(Dimensions(width: 64, height: 48)), refused])
        let request = Dimensions(width: 32, height: 16)
        #expect(try convert([bytes, bytes, bytes], to: request).last == .success(request))
    }

    @Test("An application that states a wrong size is told so each time")
    func wrongLayout() throws {
        let bytes = try JPEGMaker.make(80, 48).bytes
        let converter = try FrameConverter()
        let layout = CapturedLayout(pixelFormat: .mjpeg, dimensions: Dimensions(width: 64, height: 48), bytesPerRow: 0)
        for _ in 0..<5 {
            let error = #expect(throws: InvalidPicture.self) {
                try converter.convert(bytes.span.bytes, checking: layout, timestamp: MonotonicInstant(nanoseconds: 1))
            }
            #expect(error?.description.contains("80x48") == true, "\(error?.description ?? "")")
        }
    }

    @Test("Damaged headers that claim other sizes, or far too large ones, are not believed")
    func falseSizes() throws {
        let good = try JPEGMaker.make(64, 48).bytes
        let others = try [(32, 48), (48, 48), (64, 32)].map { try JPEGMaker.make($0.0, $0.1).bytes }
        let size = Result<Dimensions, DamagedPicture>.success(Dimensions(width: 64, height: 48))
        let sequence = [good, others[0], others[0], good, others[0], others[1], others[2], others[0], good]
        let results = try convert(sequence)
        #expect(results.map { $0 == size } == sequence.map { $0 == good })
        var huge = good
        let header = try #require(JPEGMaker.segments(good).first { $0.marker == 0xC0 })
        huge.replaceSubrange(header.range.lowerBound + 5..<header.range.lowerBound + 9, with: [0x3F, 0xFF, 0x3F, 0xFF])
        let claimed = Dimensions(width: 16_383, height: 16_383)
        #expect(try convert(Array(repeating: huge, count: 5)).allSatisfy { $0 == .failure(.otherSize(claimed)) })
    }

    @Test("The converter decodes and transforms, from a device's buffer with rubbish behind the picture")
    func converter() throws {
        let bytes = try JPEGMaker.make(64, 48, TJSAMP_422).bytes
        let plain = try decode(bytes, 64, 48)
        let transform = FrameTransform(
            crop: Dimensions(width: 32, height: 32),
            rotation: .clockwise90,
            isMirrored: true
        )
        for code in ["MJPG", "JPEG"] {
            let layout = CapturedLayout(
                pixelFormat: try #require(PixelFormat(fourCC: code)),
                dimensions: Dimensions(width: 64, height: 48),
                bytesPerRow: 0
            )
            let converter = try FrameConverter(transform: transform)
            let padded = bytes + [UInt8](repeating: 0, count: 500)
            let now = MonotonicInstant(nanoseconds: 1)
            let frame = try converter.convert(padded.span.bytes, layout: layout, timestamp: now)
            let expected = plain.cropped(16, 8, 32, 32).map { $0.rotated(.clockwise90).mirrored }
            let isSame = ReferencePicture(frame.buffer) == expected
            #expect(isSame)
        }
    }
}
