package import MediaCore

/// What is done to a picture besides converting it: cropped, then turned, then mirrored, then scaled down.
package struct FrameTransform: Hashable, Sendable {
    /// The size of the part that is kept, from the middle of the captured picture; `nil` keeps all.
    ///
    /// Sides are brought down to even ones and to what the picture has.
    package var crop: Dimensions?
    /// By how much the picture is turned.
    package var rotation: VideoRotation
    /// Whether left and right are changed over, after turning.
    package var isMirrored: Bool
    /// The largest size that may come out, after turning; larger pictures are scaled down, with the same aspect ratio.
    package var maximumDimensions: Dimensions?

    /// A transform with the given steps; without any, the picture stays as it is.
    package init(
        crop: Dimensions? = nil,
        rotation: VideoRotation = .none,
        isMirrored: Bool = false,
        maximumDimensions: Dimensions? = nil
    ) {
        self.crop = crop
        self.rotation = rotation
        self.isMirrored = isMirrored
        self.maximumDimensions = maximumDimensions
    }

    /// The size that a picture of `dimensions` has after the transform.
    package func outputDimensions(for dimensions: Dimensions) -> Dimensions {
        let steps = steps(for: dimensions)
        return rotation.swapsDimensions ? steps.scaled.transposed : steps.scaled
    }

    /// The part that is kept of a picture of `dimensions`, and its size after scaling, before turning.
    func steps(for dimensions: Dimensions) -> (kept: PictureRegion, scaled: Dimensions) {
        let kept = PictureRegion(centred: crop, in: dimensions)
        let limit = maximumDimensions.map { rotation.swapsDimensions ? $0.transposed : $0 }
        return (kept, limit.map { kept.dimensions.fitted(into: $0) } ?? kept.dimensions)
    }
}

/// A part of a picture that begins at an even row and column, so that it has whole bytes of chroma.
struct PictureRegion: Hashable, Sendable {
    var column: Int
    var row: Int
    var dimensions: Dimensions

    /// The part of size `crop` in the middle of a picture; all of it if `crop` is `nil`.
    init(centred crop: Dimensions?, in dimensions: Dimensions) {
        guard let crop else {
            (column, row, self.dimensions) = (0, 0, dimensions)
            return
        }
        let size = Dimensions(width: min(crop.width, dimensions.width), height: min(crop.height, dimensions.height))
        // A picture one pixel wide or high cannot be cut to an even size.
        self.dimensions = Dimensions(
            width: dimensions.width < 2 ? 1 : size.evenAtLeast2.width,
            height: dimensions.height < 2 ? 1 : size.evenAtLeast2.height
        )
        column = (dimensions.width - self.dimensions.width) / 2 & ~1
        row = (dimensions.height - self.dimensions.height) / 2 & ~1
    }

    /// The largest part in the middle of a picture that has the aspect ratio of `shape`.
    init(ofShape shape: Dimensions, in dimensions: Dimensions) {
        let isTooWide = dimensions.width * shape.height > shape.width * dimensions.height
        self.init(
            centred: isTooWide
                ? Dimensions(width: dimensions.height * shape.width / shape.height, height: dimensions.height)
                : Dimensions(width: dimensions.width, height: dimensions.width * shape.height / shape.width),
            in: dimensions
        )
    }
}

extension Dimensions {
    /// This size with both sides brought down to even ones, but no lower than 2.
    var evenAtLeast2: Dimensions { Dimensions(width: max(2, width & ~1), height: max(2, height & ~1)) }

    /// This size, scaled down with its aspect ratio to even sides if it does not fit into `limit`.
    func fitted(into limit: Dimensions) -> Dimensions {
        guard width > limit.width || height > limit.height else { return self }
        let limit = limit.evenAtLeast2
        let isWidthTighter = limit.width * height < limit.height * width
        return isWidthTighter
            ? Dimensions(width: limit.width, height: limit.width * height / width).evenAtLeast2
            : Dimensions(width: limit.height * width / height, height: limit.height).evenAtLeast2
    }
}
